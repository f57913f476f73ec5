"""Judging candidates by codes that they have not seen, and telling them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.labels.calibration import log_likelihood
from curvote.labels.codes import Codes
from curvote.labels.decoded import refuse_biased, rows_without_bias
from curvote.labels.left_out import LeftOut
from curvote.labels.records import rows_of
from curvote.labels.scoring import LOSSES, Scoring, contributions
from curvote.labels.simplicity import order
from curvote.validate import FloatArray

LIKELIHOOD: Final = "likelihood"
_ACCURACY = "accuracy"

Params = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Part:
    """Records (n, d) and codes (n,) that candidates learn from and are judged by."""

    X: Any
    codes: Codes
    unlabelled: Any


@dataclass(frozen=True, eq=False)
class Judged:
    """Fitted candidates, and what each record says of each: (g, n), NaN for nothing.

    ``scores`` maps the name of a score, by which candidates are judged or which stands
    beside, to those; ``sign`` is -1 where less is better.
    """

    models: Sequence[Any]
    scores: Mapping[str, FloatArray]
    sign: int

    @property
    def best(self) -> int:
        """The place of the best mean score; of equals the first."""
        return int(np.argmax(np.nanmean(self._signed, axis=1)))

    @property
    def told_apart(self) -> NDArray[np.bool_]:
        """Which candidates are behind the best by more than the standard error of it.

        The difference is taken record by record: what both owe to the same codes is in
        neither.
        """
        behind = self._signed[self.best] - self._signed
        return np.asarray(np.nanmean(behind, axis=1) > _error(behind))

    @property
    def simplest(self) -> int:
        """The place of the simplest candidate that is not told from the best."""
        apart = self.told_apart
        places = order([model.estimator for model in self.models])
        return next(place for place in places if not apart[place])

    @property
    def _signed(self) -> FloatArray:
        return self.sign * next(iter(self.scores.values()))

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns of a table with a row a candidate."""
        made: dict[str, NDArray[Any]] = {}
        for name, each in self.scores.items():
            made[f"mean_test_{name}"] = np.nanmean(each, axis=1)
            made[f"std_error_test_{name}"] = _error(each)
        means = np.nanmean(self._signed, axis=1)
        made["rank_test_score"] = 1 + (means[:, None] < means).sum(axis=1)
        return made | {"told_apart": self.told_apart}

    def sentence(self, params: Sequence[Params]) -> str:
        """Return what was taken, and what could not be told from the best."""
        level = int((~self.told_apart).sum())
        taken = _written(params[self.simplest])
        if len(params) == 1:
            return f"{taken} is the only candidate."
        if level == 1:
            return f"{taken} is better than the {len(params) - 1} others."
        return (
            f"{level} of {len(params)} candidates cannot be told from the best,"
            f" {_written(params[self.best])}: {taken} is the simplest of them."
        )


def judged(part: Part, candidates: Sequence[Any], scoring: Scoring) -> Judged:
    """Fit all candidates, and judge each by codes that its votes do not know.

    Where the likelihood of the codes decides, their accuracy is told beside it.
    """
    named: dict[str, Scoring] = {"score": scoring}
    if scoring == LIKELIHOOD:
        named["accuracy"] = _ACCURACY
    left_out = [
        model.fit_left_out(part.X, part.codes, part.unlabelled) for model in candidates
    ]
    scores = {
        name: np.stack([_each(part, one, each) for one in left_out])
        for name, each in named.items()
    }
    return Judged(candidates, scores, -1 if scoring in LOSSES else 1)


def _each(part: Part, left_out: LeftOut, scoring: Scoring) -> FloatArray:
    """Return what each record says of one candidate, (n,)."""
    rows, told = left_out
    codes = part.codes[rows]
    each = np.full(len(part.codes), np.nan)
    if scoring == LIKELIHOOD:
        each[rows] = log_likelihood(told.proba, codes.likelihood())
    else:
        each[rows] = _scored(part.X, left_out, codes, scoring)
    return each


def _scored(X: Any, left_out: LeftOut, codes: Codes, scoring: Scoring) -> FloatArray:
    """Return what records say of a score, (r,): of a biased code nothing, NaN."""
    each, fair = np.full(len(codes), np.nan), rows_without_bias(codes)
    if not fair.any():
        refuse_biased(codes)
    records = rows_of(X, left_out.rows[fair])
    told = left_out.told[fair]
    each[fair] = contributions(told, records, codes[fair], scoring)
    return each


def _error(each: FloatArray) -> FloatArray:
    """Return the standard error of the mean of each row (g, n), NaN left out."""
    count = np.isfinite(each).sum(axis=1)
    return np.asarray(np.nanstd(each, axis=1) / np.sqrt(count))


def _written(params: Params) -> str:
    return ", ".join(f"{name}={value}" for name, value in params.items()) or "the model"
