"""Choosing settings by the likelihood of the codes: no label, no code's own vote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.labels import calibration
from curvote.validate import FloatArray

# Of each array that judging makes; where more records are, a sample is judged.
_NUMBERS = 1 << 23


@dataclass(frozen=True, eq=False)
class Tried:
    """One setting of one learner, judged: ``scores`` (r,) are log likelihoods."""

    name: str
    params: Mapping[str, Any]
    exponent: int
    scores: FloatArray = field(repr=False)

    @property
    def likelihood(self) -> float:
        """The mean log likelihood of the codes, up to a constant of theirs."""
        return float(self.scores.mean())

    def row(self) -> dict[str, Any]:
        """Return what was tried as a row of a table."""
        se = float(self.scores.std() / np.sqrt(len(self.scores)))
        return {
            "name": self.name,
            "params": dict(self.params),
            "exponent": self.exponent,
            "likelihood": self.likelihood,
            "se": se,
        }


def judged(
    name: str, params: Mapping[str, Any], votes: FloatArray, likely: FloatArray
) -> Tried:
    """Judge votes (r, K) that do not know their codes, of this likelihood (r, K)."""
    return Tried(name, params, *calibration.best(votes, likely))


def likeliest(tried: Iterable[Tried]) -> Tried:
    """Return what makes the codes likeliest; of equals the first."""
    return max(tried, key=lambda one: one.likelihood)


def simplest(tried: Sequence[Tried]) -> Tried:
    """Return the first that cannot be told from the likeliest.

    It is behind by no more than the standard error of the difference.
    """
    best = likeliest(tried)
    return next(one for one in tried if not _behind(one.scores, best.scores))


def _behind(scores: FloatArray, best: FloatArray) -> bool:
    lost = best - scores
    return bool(lost.mean() > lost.std() / np.sqrt(len(lost)))


def judged_rows(n: int, width: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the records (r,) by which settings are judged: all, or a sample.

    ``width`` is how many numbers judging holds of each record.
    """
    most = max(1, _NUMBERS // width)
    if n <= most:
        return np.arange(n)
    return np.sort(rng.choice(n, most, replace=False))
