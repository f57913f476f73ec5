"""Training on codes: records by their public names, the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import UserError
from curvote.chain.stage import Columns, Metadata, Params, StageContext
from curvote.systems.labels.codes.codes import Codes
from curvote.systems.labels.codes.predictions import Score, mean_score, predictions_of
from curvote.systems.labels.learners.base import Learner
from curvote.systems.labels.messages import CODE, PRIOR, RECORD
from curvote.systems.labels.method.classifier import PrivateLabelClassifier
from curvote.systems.labels.method.scoring import SCORINGS, score_contributions
from curvote.systems.labels.task import Task

Index = NDArray[np.int64]
Names = NDArray[Any]


def rows_by_name(names: Names, requested: Names) -> Index:
    """Return the rows of records by name; one that is not there is a UserError."""
    place = {name: row for row, name in enumerate(names)}
    try:
        return np.array([place[name] for name in requested], dtype=np.int64)
    except KeyError as error:
        message = f"a code is about record {error.args[0]!r}, which has no features."
        raise UserError(message) from None


def rows_without_codes(names: Names, coded: Names) -> Index:
    """Return the rows of the records that have no code."""
    coded_names = set(coded)
    rows = [row for row, name in enumerate(names) if name not in coded_names]
    return np.array(rows, dtype=np.int64)


def codes_from_table(
    metadata: Metadata, table: Columns, prior: NDArray[Any] | None = None
) -> Codes:
    """Return the codes of one round's table, with all that is public about them."""
    task = Task.from_json(metadata["task"])
    classes = np.asarray(task.classes, dtype=object)
    return Codes(
        table[CODE], classes, task.epsilon, task.encoder, dict(task.params), prior
    )


def record_priors(context: StageContext, names: Names) -> NDArray[np.float64]:
    """Return the priors of some records, (n, K)."""
    table = context.rows("learn", "priors")
    return np.asarray(table[PRIOR][rows_by_name(table[RECORD], names)])


Array = NDArray[np.float64]
# Fewer held-out codes than that say nothing.
MIN_HOLDOUT = 30


@dataclass(frozen=True, eq=False)
class Records:
    """Public records (n, d) with codes (n,), and ``unlabelled`` (m, d) without."""

    X: Array
    codes: Codes
    unlabelled: Array


def fit_model(records: Records, estimator: Any, params: Params, seed: int) -> Any:
    """Return the classifier that one learner makes of all codes."""
    classifier = PrivateLabelClassifier(
        estimator=estimator,
        epsilon=records.codes.epsilon,
        encoder=records.codes.encoder,
        classes=records.codes.classes,
        decide=params["labels.decide"],
        calibrate=params["labels.calibrate"],
        random_state=seed,
    )
    unlabelled = records.unlabelled if len(records.unlabelled) else None
    return classifier.fit(records.X, records.codes, unlabelled=unlabelled)


def fit_with_holdout(
    records: Records, learner: Learner, params: Params, rng: np.random.Generator
) -> TrainedModel:
    """Choose on some codes, score the choice on the rest, and take all for the model.

    The rest have no part in choosing, so their score is honest; the model of the same
    choice from all codes is, if anything, better.
    """
    seed = int(rng.integers(2**31))
    holdout = _draw_holdout(records.codes, params["labels.holdout"], rng)
    if len(holdout) < MIN_HOLDOUT:
        return TrainedModel(fit_model(records, learner, params, seed), {}, 0)
    rest = np.setdiff1d(np.arange(len(records.codes)), holdout)
    unlabelled = np.concatenate([records.unlabelled, records.X[holdout]])
    part = Records(records.X[rest], records.codes[rest], unlabelled)
    chosen = fit_model(part, learner, params, seed)
    X = records.X[holdout]
    codes = records.codes[holdout]
    predictions = predictions_of(chosen, X, codes)
    values = {
        name: score_contributions(predictions, X, codes, name) for name in SCORINGS
    }
    scores = {name: mean_score(record_values) for name, record_values in values.items()}
    final = fit_model(records, chosen.learner_.fixed(), params, seed)
    return TrainedModel(final, scores, len(holdout))


def _draw_holdout(
    codes: Codes, share: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return the rows that take no part in choosing: of codes that are unbiased.

    Where a record has a prior, that is one that says nothing.
    """
    rows = np.arange(len(codes))
    if codes.prior is not None:
        rows = rows[(codes.prior == codes.prior[:, :1]).all(axis=1)]
    size = min(round(share * len(codes)), len(rows) // 2)
    return np.sort(rng.permutation(rows)[:size])


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """Model of all codes, and the scores of its choice by codes held out."""

    model: Any
    scores: dict[str, Score]
    holdout_size: int

    def honest_table(self) -> Columns:
        """Return the table ``honest_table``, a row for each scoring."""
        scores = list(self.scores.values())
        parts = {
            name: np.array([getattr(score, name) for score in scores], dtype=np.float64)
            for name in ("value", "se", "low", "high")
        }
        names = np.array([*self.scores], dtype=object)
        return {"scoring": names, **parts, "n": np.full(len(scores), self.holdout_size)}

    def share_table(self) -> Columns:
        """Return the table ``share_table``."""
        return {
            "class": np.asarray(self.model.classes_, dtype=object),
            "share": self.model.share_,
            "se": self.model.share_se_,
        }
