"""Choice of settings by the likelihood of the codes: no label, no code's own vote."""

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
class Trial:
    """One setting of one learner, with log likelihoods ``scores`` (r,) of codes."""

    name: str
    params: Mapping[str, Any]
    exponent: int
    scores: FloatArray = field(repr=False)

    @property
    def likelihood(self) -> float:
        """Return the mean log likelihood of the codes, up to a constant of theirs."""
        return float(self.scores.mean())

    def to_row(self) -> dict[str, Any]:
        """Return the trial as a row of a table."""
        se = float(self.scores.std() / np.sqrt(len(self.scores)))
        return {
            "name": self.name,
            "params": dict(self.params),
            "exponent": self.exponent,
            "likelihood": self.likelihood,
            "se": se,
        }


def make_trial(
    name: str, params: Mapping[str, Any], votes: FloatArray, likely: FloatArray
) -> Trial:
    """Return the trial of votes (r, K) that do not know their codes."""
    return Trial(name, params, *calibration.best_exponent(votes, likely))


def likeliest_trial(trials: Iterable[Trial]) -> Trial:
    """Return the trial that makes the codes likeliest; of equals the first."""
    return max(trials, key=lambda one: one.likelihood)


def simplest_trial(trials: Sequence[Trial]) -> Trial:
    """Return the first trial that cannot be told from the likeliest.

    It is behind by no more than the standard error of the difference.
    """
    best = likeliest_trial(trials)
    return next(trial for trial in trials if not _is_worse(trial.scores, best.scores))


def _is_worse(scores: FloatArray, best: FloatArray) -> bool:
    lost = best - scores
    return bool(lost.mean() > lost.std() / np.sqrt(len(lost)))


def sample_rows(n: int, width: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the records (r,) by which settings are judged: all, or a sample.

    ``width`` is how many numbers judging holds of each record.
    """
    most = max(1, _NUMBERS // width)
    if n <= most:
        return np.arange(n)
    return np.sort(rng.choice(n, most, replace=False))
