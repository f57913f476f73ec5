"""Search among classifiers by codes alone, and an honest score of what was chosen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils.validation import check_is_fitted

from curvote.base import validate
from curvote.base.entropy import RandomState, check_random_state, seed_sequence
from curvote.base.errors import UserError, did_you_mean
from curvote.base.release_counter import refuse_weights
from curvote.base.validate import FloatArray
from curvote.mechanisms.base import LabelMechanism
from curvote.systems.labels.codes.codes import Codes, TrueLabels
from curvote.systems.labels.codes.encoders import (
    AUTO,
    CANDIDATES,
    build_encoder,
    mechanism_name,
)
from curvote.systems.labels.codes.predictions import Score, Z
from curvote.systems.labels.method.classifier import PrivateLabelClassifier
from curvote.systems.labels.method.inputs import (
    LP_2ST,
    CodeCollector,
    further_records,
    training_records,
)
from curvote.systems.labels.method.scoring import (
    SCORINGS,
    Scoring,
    private_score,
    unbiased_rows,
)
from curvote.systems.labels.method.selection import (
    LIKELIHOOD,
    Params,
    SelectionData,
    score_candidates,
)

# An accuracy lies in [0, 1]: a wider interval than that says nothing.
_HALF_WIDTH = 0.5


def draw_holdout(
    codes: Codes, share: float, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Return rows (h,) drawn for scoring: ``share`` of all, of unbiased codes only.

    Too few for any statement are a UserError that says how many labels it takes.
    """
    rows = np.flatnonzero(unbiased_rows(codes))
    holdout = rng.permutation(rows)[: round(share * len(codes))]
    refuse_small_holdout(len(holdout), len(codes), share, codes[:1].mechanism)
    return np.sort(holdout)


def refuse_small_holdout(
    size: int, n: int, share: float, mechanism: LabelMechanism | TrueLabels
) -> None:
    """Refuse (UserError) a share of ``n`` codes too small for any statement."""
    needed = min_holdout(mechanism)
    if size < needed:
        raise UserError(
            f"holdout is {share:g}: {size} of {n} labels. By {mechanism.name} for"
            f" {mechanism.n_classes} classes{_budget_text(mechanism)} it takes {needed}"
            " held-out labels to say anything of an accuracy,"
            f" {math.ceil(needed / share)} in all."
        )


def min_holdout(mechanism: LabelMechanism | TrueLabels) -> int:
    """Return how many codes make an accuracy's 95 % interval shorter than [0, 1].

    From the variance of one decoded code, and at most 1/4 of the label itself.
    """
    noise = 0.0
    if isinstance(mechanism, LabelMechanism):
        noise = float(mechanism.variance(np.zeros(1, dtype=np.int64)).max())
    return max(2, math.ceil((noise + 0.25) * (Z / _HALF_WIDTH) ** 2))


def _budget_text(mechanism: LabelMechanism | TrueLabels) -> str:
    if isinstance(mechanism, LabelMechanism):
        return f" at epsilon {mechanism.epsilon:g}"
    return ""


# For a classifier of estimator "auto", the simplest first.
_LEARNERS: Final = {"estimator": ["ridge", "knn", "likelihood", "spectral"]}

Grid = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]]


class PrivateSearchCV(
    CodeCollector, MetaEstimatorMixin, ClassifierMixin, BaseEstimator
):
    """Chooses the parameters of a `PrivateLabelClassifier` by codes, and says how good.

    A share of the records is held out. Every candidate learns from the others, and is
    judged by what it says of each of them without that record's own code: left-out
    votes, or three folds. The best of many judged so is too good to be true, so the
    score of what was chosen comes from the share held out: of it the features alone
    take part, as further records of the graph.

    Parameters
    ----------
    estimator : PrivateLabelClassifier or None, default=None
        What is tuned; None stands for ``PrivateLabelClassifier()``.
    grid : dict of lists, or a list of such, default=None
        Values for the classifier's parameters, as ``{"estimator": [...]}`` or
        ``{"estimator__k": [...]}``. None: the four learners where ``estimator`` is
        ``auto``, otherwise the classifier as it is.
    holdout : float in (0, 1), default=0.2
        The share of the records that gives ``best_score_``.
    scoring : "likelihood" or a scoring of `private_score`, default="likelihood"
        What candidates are judged by. The likelihood of the codes boasts less.
    random_state : int, RandomState, Generator or None, default=None
        What splits the records; with plain labels also their noise, as in
        `PrivateLabelClassifier`.

    Attributes
    ----------
    best_estimator_, best_params_, best_index_ : object, dict, int
        What was taken: the simplest of those that cannot be told from the best. It was
        trained without the share held out.
    best_score_ : Score
        Of that very model on the share held out: by ``scoring``, and accuracy where
        this is ``likelihood``.
    cv_results_ : dict
        ``params``, ``mean_test_score``, ``std_error_test_score``, ``rank_test_score``
        and ``told_apart``, one entry a candidate, and ``mean_test_accuracy``,
        ``std_error_test_accuracy`` where ``scoring`` is ``likelihood``.
    told_apart_ : array (g,)
        Whether each candidate is behind the best by more than the standard error of
        their difference.
    verdict_ : str
        The same as a sentence.
    held_out_ : array (h,)
        The rows of the share held out.
    classes_, n_features_in_, feature_names_in_ : arrays, int
        As in `PrivateLabelClassifier`.
    spent_, releases_, private_ : Budget, array (n,), bool, or None
        As in `PrivateLabelClassifier`: each label is asked once for all candidates.

    Notes
    -----
    A UserError (a ValueError) names parameters or data that are out of range, and a
    share held out that is too small for any statement.

    The largest of ``cv_results_`` lies above the truth, the more so the more candidates
    there are: of 24 values of k on the circle of 16 classes (2,000 records, epsilon .5)
    the best claimed 56 % in the mean, where the models chosen were right in 42 %, and
    ``best_score_`` said 45 (se 2; ``benchmarks/labels_honest.py``).

    Candidates count as simpler with more neighbours, fewer eigenvectors or more ridge,
    and otherwise in the order of the grid.

    Examples
    --------
    >>> import numpy as np
    >>> from curvote.labels import encode
    >>> X, y = np.tile([[-1.0], [1.0]], (1000, 1)), np.tile(["no", "yes"], 1000)
    >>> codes = encode(y, epsilon=2.0, random_state=0)
    >>> model = PrivateLabelClassifier("knn", epsilon=2.0)
    >>> grid = {"estimator": ["ridge", "knn"]}
    >>> search = PrivateSearchCV(model, grid, random_state=0).fit(X, codes)
    >>> print(search.best_params_, *search.predict([[-0.9], [1.2]]))
    {'estimator': 'ridge'} no yes
    """

    def __init__(
        self,
        estimator: PrivateLabelClassifier | None = None,
        grid: Grid | None = None,
        holdout: float = 0.2,
        scoring: Scoring = LIKELIHOOD,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.grid = grid
        self.holdout = holdout
        self.scoring = scoring
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        tags.non_deterministic = self.random_state is None
        return tags

    def fit(self, X: Any, y: Any, unlabelled: Any = None, **refused: Any) -> Self:
        """Choose by records X (n, d) and `Codes` (n,), or plain labels asked for once.

        ``unlabelled`` (u, d) are further public records, for learners of graphs. A
        ``sample_weight`` is a UserError.
        """
        refuse_weights(self, refused)
        records = training_records(self, X)
        base = PrivateLabelClassifier() if self.estimator is None else self.estimator
        if not isinstance(base, PrivateLabelClassifier):
            raise UserError(
                f"estimator is {validate.format_value(base)}; give a"
                " PrivateLabelClassifier, whose"
                " own estimator it may tune, or None."
            )
        tried = _expand_grid(_default_grid(self.grid, base), base)
        self._check_parameters()
        rng, entropy = self._random_sources()
        seed = base.random_state
        if not isinstance(seed, int | np.integer):
            sequence = seed_sequence(seed)
            generator = rng if sequence is None else np.random.default_rng(sequence)
            seed = int(generator.integers(2**31))
        models = [
            clone(base).set_params(**clone(params, safe=False)) for params in tried
        ]
        candidates = [model.set_params(random_state=seed) for model in models]
        more = (
            []
            if unlabelled is None
            else [further_records(self, unlabelled, "unlabelled")]
        )
        codes = self._collect_codes(base, records, y, rng, entropy)
        holdout = draw_holdout(codes, self.holdout, rng)
        rest = np.setdiff1d(np.arange(len(codes)), holdout)
        further = self._with_names(np.concatenate([records[holdout], *more]))
        part = SelectionData(self._with_names(records[rest]), codes[rest], further)
        scores = score_candidates(part, candidates, self.scoring)
        place = scores.simplest_place
        self.best_index_, self.best_params_ = place, tried[place]
        self.best_estimator_ = scores.models[place]
        # Whoever fits it anew with plain labels wants noise, not the search's seed.
        self.best_estimator_.set_params(random_state=base.random_state)
        self.cv_results_ = {"params": tried, **scores.to_columns()}
        self.told_apart_ = scores.significantly_worse
        self.verdict_ = scores.verdict(tried)
        self.best_score_ = self._score_holdout(records[holdout], codes[holdout])
        self.held_out_, self.classes_ = holdout, codes.classes
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted class of each record, (n,), by what was chosen."""
        check_is_fitted(self, "classes_")
        return np.asarray(self.best_estimator_.predict(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class, (n, K), by what was chosen."""
        check_is_fitted(self, "classes_")
        return np.asarray(self.best_estimator_.predict_proba(X))

    def _with_names(self, records: FloatArray) -> Any:
        names = getattr(self, "feature_names_in_", None)
        return records if names is None else pd.DataFrame(records, columns=names)

    def _check_parameters(self) -> None:
        validate.fraction(holdout=self.holdout)
        if not callable(self.scoring):
            validate.one_of((LIKELIHOOD, *SCORINGS), scoring=self.scoring)
        check_random_state(self.random_state)

    def _refuse_few_labels(self, model: Any, n: int, k: int) -> None:
        """Refuse a holdout too small for any statement, before labels are spent."""
        of_rounds = model.encoder == LP_2ST
        name = "k_rr" if of_rounds else mechanism_name(model.encoder, k, model.epsilon)
        if name in CANDIDATES:
            size = min(round(self.holdout * n), n // 2 if of_rounds else n)
            refuse_small_holdout(
                size, n, self.holdout, build_encoder(name, k, model.epsilon)
            )

    def _score_holdout(self, records: FloatArray, codes: Codes) -> Score:
        """Return the chosen model's score on the records held out."""
        scoring = "accuracy" if self.scoring == LIKELIHOOD else self.scoring
        named = self._with_names(records)
        return private_score(self.best_estimator_, named, codes, scoring)


def _default_grid(grid: Grid | None, base: Any) -> Grid:
    if grid is not None:
        return grid
    return (
        _LEARNERS
        if (isinstance(base.estimator, str) and base.estimator == AUTO)
        else {}
    )


def _is_dict_of_lists(part: Any) -> bool:
    return isinstance(part, Mapping) and all(
        hasattr(values, "__len__") and not isinstance(values, str)
        for values in part.values()
    )


def _expand_grid(grid: Any, base: Any) -> list[Params]:
    """Return the candidates of a grid; none, and no lists, are UserErrors."""
    parts = [grid] if isinstance(grid, Mapping) else grid
    if not isinstance(parts, list | tuple) or not all(map(_is_dict_of_lists, parts)):
        raise UserError(
            f"grid is {validate.format_value(grid)}; give a dict of lists, such as"
            " {'estimator': ['knn', 'ridge']}, or a list of such."
        )
    parameters = base.get_params(deep=False)
    for name in {str(name).partition("__")[0] for part in parts for name in part}:
        if name not in parameters:
            raise UserError(
                f"grid names {name!r}, no parameter of the estimator."
                f"{did_you_mean(name, parameters)}"
            )
    empty = [name for part in parts for name, values in part.items() if not len(values)]
    if empty or not parts:
        problem = f"no value for {', '.join(map(str, empty))}" if empty else "no member"
        raise UserError(f"grid has {problem}; give at least one candidate.")
    return [dict(params) for params in ParameterGrid(parts)]
