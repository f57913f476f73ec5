"""What the server makes of codes: a model, how good it is, what it says of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Params
from curvote.labels.classifier import PrivateLabelClassifier
from curvote.labels.codes import Codes
from curvote.labels.learners.base import Learner
from curvote.labels.predicted import predicted
from curvote.labels.score import Score, score_of
from curvote.labels.scoring import SCORINGS, contributions

Array = NDArray[np.float64]
# Fewer held-out codes than that say nothing.
FEWEST = 30


@dataclass(frozen=True, eq=False)
class Records:
    """Public records (n, d) with codes (n,), and others (m, d) without."""

    X: Array
    codes: Codes
    others: Array


def model(records: Records, estimator: Any, params: Params, seed: int) -> Any:
    """Return the classifier that one learner makes of all codes."""
    made = PrivateLabelClassifier(
        estimator=estimator,
        epsilon=records.codes.epsilon,
        encoder=records.codes.encoder,
        classes=records.codes.classes,
        decide=params["labels.decide"],
        calibrate=params["labels.calibrate"],
        random_state=seed,
    )
    others = records.others if len(records.others) else None
    return made.fit(records.X, records.codes, unlabelled=others)


def learnt(
    records: Records, learner: Learner, params: Params, rng: np.random.Generator
) -> Learnt:
    """Choose on some codes, score the choice on the rest, and take all for the model.

    The rest have no part in choosing, so their score is honest; the model of the same
    choice from all codes is, if anything, better.
    """
    seed = int(rng.integers(2**31))
    mine = _held(records.codes, params["labels.holdout"], rng)
    if len(mine) < FEWEST:
        return Learnt(model(records, learner, params, seed), {}, 0)
    rest = np.setdiff1d(np.arange(len(records.codes)), mine)
    others = np.concatenate([records.others, records.X[mine]])
    part = Records(records.X[rest], records.codes[rest], others)
    chosen = model(part, learner, params, seed)
    told = _scores(chosen, records.X[mine], records.codes[mine])
    final = model(records, chosen.learner_.fixed(), params, seed)
    return Learnt(final, told, len(mine))


def _scores(chosen: Any, X: Array, codes: Codes) -> dict[str, Score]:
    """Return each score of one model, which says what it says once."""
    said = predicted(chosen, X, codes)
    told = {name: contributions(said, X, codes, name) for name in SCORINGS}
    return {name: score_of(each) for name, each in told.items()}


def _held(codes: Codes, share: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the rows that take no part in choosing: of codes that are unbiased.

    Where a record has a prior, that is one that says nothing.
    """
    rows = np.arange(len(codes))
    if codes.prior is not None:
        rows = rows[(codes.prior == codes.prior[:, :1]).all(axis=1)]
    held = min(round(share * len(codes)), len(rows) // 2)
    return np.sort(rng.permutation(rows)[:held])


@dataclass(frozen=True, eq=False)
class Learnt:
    """The model of all codes, and the scores of its choice by ``held`` of them."""

    model: Any
    scores: dict[str, Score]
    held: int

    def honest(self) -> Columns:
        """Return the table ``honest``, a row for each scoring."""
        told = list(self.scores.values())
        parts = {
            name: np.array([getattr(each, name) for each in told], dtype=np.float64)
            for name in ("value", "se", "low", "high")
        }
        names = np.array([*self.scores], dtype=object)
        return {"scoring": names, **parts, "n": np.full(len(told), self.held)}

    def shares(self) -> Columns:
        """Return the table ``shares``."""
        return {
            "class": np.asarray(self.model.classes_, dtype=object),
            "share": self.model.share_,
            "se": self.model.share_se_,
        }
