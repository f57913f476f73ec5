"""Selection among candidates by codes that they have not seen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from curvote.base.validate import FloatArray
from curvote.systems.labels.codes.codes import Codes
from curvote.systems.labels.learners.calibration import log_likelihood
from curvote.systems.labels.learners.factory import Foreign, make
from curvote.systems.labels.method.classifier import LeftOutPredictions
from curvote.systems.labels.method.inputs import take_rows
from curvote.systems.labels.method.scoring import (
    LOSSES,
    Scoring,
    refuse_biased_codes,
    score_contributions,
    unbiased_rows,
)

# The direction in which a hyperparameter makes a learner smoother.
SMOOTHER: Mapping[str, int] = {
    "k": 1,
    "n_neighbors": 1,
    "min_samples_leaf": 1,
    "m": -1,
    "n_components": -1,
    "max_depth": -1,
    "C": -1,
    "alpha": 1,
    "ridge": 1,
}


def simplicity_order(estimators: Sequence[Any]) -> list[int]:
    """Return the places of the candidates' estimators, the simplest first.

    Kinds of learners come in the order of the grid. Within a kind more neighbours,
    fewer eigenvectors or components and more ridge are simpler; what is tuned or has
    no such number keeps the order of the grid.
    """
    parts = [list(_learner_steps(estimator)) for estimator in estimators]
    kinds = list(dict.fromkeys(tuple(kind for kind, _ in steps) for steps in parts))

    def sort_key(place: int) -> tuple[Any, ...]:
        names = tuple(kind for kind, _ in parts[place])
        rough = [
            [
                -_finite_number(params.get(name)) * sign
                for name, sign in SMOOTHER.items()
            ]
            for _, params in parts[place]
        ]
        return kinds.index(names), rough, place

    return sorted(range(len(estimators)), key=sort_key)


def _learner_steps(estimator: Any) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Yield the kind and settings of a learner, or of each step of a Pipeline."""
    learner = make(estimator)
    inner = learner.estimator if isinstance(learner, Foreign) else learner
    for _, step in inner.steps if isinstance(inner, Pipeline) else [("", inner)]:
        yield (
            type(step).__name__,
            (step.get_params(deep=False) if hasattr(step, "get_params") else {}),
        )


def _finite_number(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else 0.0


LIKELIHOOD: Final = "likelihood"
_ACCURACY = "accuracy"

Params = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class SelectionData:
    """Records (n, d) and codes (n,) that candidates learn from and are judged by."""

    X: Any
    codes: Codes
    unlabelled: Any


@dataclass(frozen=True, eq=False)
class CandidateScores:
    """Fitted candidates, and each record's score of each: (g, n), NaN for none.

    ``scores`` maps the name of a score, by which candidates are judged or which stands
    beside, to those; ``sign`` is -1 where less is better.
    """

    models: Sequence[Any]
    scores: Mapping[str, FloatArray]
    sign: int

    @property
    def best_place(self) -> int:
        """Return the place of the best mean score; of equals the first."""
        return int(np.argmax(np.nanmean(self._signed_scores, axis=1)))

    @property
    def significantly_worse(self) -> NDArray[np.bool_]:
        """Return which candidates are worse than the best beyond the standard error.

        The difference is taken record by record: what both owe to the same codes is in
        neither.
        """
        behind = self._signed_scores[self.best_place] - self._signed_scores
        return np.asarray(np.nanmean(behind, axis=1) > _standard_errors(behind))

    @property
    def simplest_place(self) -> int:
        """The place of the simplest candidate that is not told from the best."""
        apart = self.significantly_worse
        places = simplicity_order([model.estimator for model in self.models])
        return next(place for place in places if not apart[place])

    @property
    def _signed_scores(self) -> FloatArray:
        return self.sign * next(iter(self.scores.values()))

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns of a table with a row a candidate."""
        table: dict[str, NDArray[Any]] = {}
        for name, values in self.scores.items():
            table[f"mean_test_{name}"] = np.nanmean(values, axis=1)
            table[f"std_error_test_{name}"] = _standard_errors(values)
        means = np.nanmean(self._signed_scores, axis=1)
        table["rank_test_score"] = 1 + (means[:, None] < means).sum(axis=1)
        return table | {"told_apart": self.significantly_worse}

    def verdict(self, params: Sequence[Params]) -> str:
        """Return a sentence: the candidate chosen, and those as good as the best."""
        ties = int((~self.significantly_worse).sum())
        chosen = _format_params(params[self.simplest_place])
        if len(params) == 1:
            return f"{chosen} is the only candidate."
        if ties == 1:
            return f"{chosen} is better than the {len(params) - 1} others."
        return (
            f"{ties} of {len(params)} candidates cannot be told from the best,"
            f" {_format_params(params[self.best_place])}: {chosen} is the simplest of"
            " them."
        )


def score_candidates(
    part: SelectionData, candidates: Sequence[Any], scoring: Scoring
) -> CandidateScores:
    """Fit all candidates, and score each by codes that its votes do not know.

    Where the likelihood of the codes decides, their accuracy is told beside it.
    """
    named: dict[str, Scoring] = {"score": scoring}
    if scoring == LIKELIHOOD:
        named["accuracy"] = _ACCURACY
    left_out = [
        model.fit_left_out(part.X, part.codes, part.unlabelled) for model in candidates
    ]
    scores = {
        name: np.stack(
            [_record_scores(part, predictions, kind) for predictions in left_out]
        )
        for name, kind in named.items()
    }
    return CandidateScores(candidates, scores, -1 if scoring in LOSSES else 1)


def _record_scores(
    part: SelectionData, left_out: LeftOutPredictions, scoring: Scoring
) -> FloatArray:
    """Return each record's score of one candidate, (n,), NaN for none."""
    rows, predictions = left_out
    codes = part.codes[rows]
    scores = np.full(len(part.codes), np.nan)
    if scoring == LIKELIHOOD:
        scores[rows] = log_likelihood(predictions.proba, codes.likelihood())
    else:
        scores[rows] = _unbiased_scores(part.X, left_out, codes, scoring)
    return scores


def _unbiased_scores(
    X: Any, left_out: LeftOutPredictions, codes: Codes, scoring: Scoring
) -> FloatArray:
    """Return each record's contribution to a score, (r,), NaN for a biased code."""
    scores, unbiased = np.full(len(codes), np.nan), unbiased_rows(codes)
    if not unbiased.any():
        refuse_biased_codes(codes)
    records = take_rows(X, left_out.rows[unbiased])
    predictions = left_out.predictions[unbiased]
    scores[unbiased] = score_contributions(
        predictions, records, codes[unbiased], scoring
    )
    return scores


def _standard_errors(scores: FloatArray) -> FloatArray:
    """Return the standard error of the mean of each row (g, n), NaN left out."""
    count = np.isfinite(scores).sum(axis=1)
    return np.asarray(np.nanstd(scores, axis=1) / np.sqrt(count))


def _format_params(params: Params) -> str:
    return ", ".join(f"{name}={value}" for name, value in params.items()) or "the model"
