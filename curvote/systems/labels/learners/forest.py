"""Forests of decoded codes: averages over many partitions of the records."""

from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from curvote.base import validate
from curvote.base.validate import FloatArray
from curvote.systems.labels.learners.base import Learner, LeftOutVotes, TrainingSet
from curvote.systems.labels.learners.smoothing import (
    CodeTargets,
    Trial,
    likeliest_trial,
    make_trial,
)

# Records of a leaf: noise needs large ones, and a code of little noise small ones. Set
# beforehand; that a forest helps was seen on 21 even seeds of benchmarks/court.
LEAVES = (10, 30, 100)
_TREES = 100
_SEED = 0  # trees are drawn alike in every fit, so that a stated leaf grows them again


@dataclass(eq=False, repr=False)
class Forest(Learner):
    """Extremely randomised trees (Geurts et al. 2006) on the K decoded columns.

    A leaf has ``leaf`` records or more; None: by the likelihood of the codes, under
    votes of the trees that have not drawn them.
    """

    leaf: int | None = None

    def _learn(self, data: TrainingSet) -> None:
        """Grow a forest for each number of records, and keep one."""
        if self.leaf is not None:
            validate.at_least(1, leaf=self.leaf)
        leaves = LEAVES if self.leaf is None else (self.leaf,)
        targets = CodeTargets.from_codes(data.codes)
        trials: list[Trial] = []
        grown: list[ExtraTreesRegressor] = []
        for leaf in leaves:
            forest = ExtraTreesRegressor(
                _TREES,
                min_samples_leaf=leaf,
                bootstrap=True,
                oob_score=True,
                random_state=_SEED,
            )
            grown.append(forest.fit(data.X, targets.decoded))
            votes = np.asarray(forest.oob_prediction_)
            trials.append(make_trial("forest", {"leaf": leaf}, votes, targets.likely))
        best = likeliest_trial(trials)
        self.forest_ = grown[trials.index(best)]
        self.chosen_ = dict(best.params)
        self.tried_ = [trial.to_row() for trial in trials] * (self.leaf is None)
        left_out = LeftOutVotes(np.arange(len(data.X)), self.forest_.oob_prediction_)
        self._set_left_out(lambda: left_out)

    def votes(self, X: FloatArray) -> FloatArray:
        """Return the mean of the leaves' decoded codes."""
        return np.asarray(self.forest_.predict(X))
