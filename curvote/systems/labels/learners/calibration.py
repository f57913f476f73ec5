"""Calibration of votes by the likelihood of the codes, and choice of settings by it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.systems.labels.codes.codes import Codes

EXPONENTS = range(1, 9)
# What the votes leave to all classes alike: no class of a record is impossible.
_FLOOR = 1e-3


class Calibration(NamedTuple):
    """The exponent of votes, and the mean log likelihood of the codes under it."""

    exponent: int
    likelihood: float


def to_simplex(votes: FloatArray) -> FloatArray:
    """Return votes (n, K) scaled to sum to 1 in each row; negative ones are 0.

    A row without a positive vote is uniform.
    """
    positive = np.clip(votes, 0, None)
    sums = positive.sum(axis=1, keepdims=True)
    even = np.full_like(positive, 1 / votes.shape[1])
    return np.asarray(np.divide(positive, sums, out=even, where=sums > 0))


def probabilities(votes: FloatArray, exponent: float) -> FloatArray:
    """Return calibrated probabilities (n, K) of votes (n, K); rows sum to 1.

    They order the classes as the votes do, but for votes below 0, which are equal.
    """
    shares = to_simplex(votes)
    shares /= shares.max(axis=1, keepdims=True)
    return _floor_and_normalise(shares**exponent)


def fit_exponent(votes: FloatArray, codes: Codes) -> Calibration:
    """Return the exponent of 1 to 8 under which the codes are likeliest.

    ``votes`` (n, K) must not know the codes of their own records: left-out votes, or
    those for records that took no part in learning.
    """
    if len(votes) != len(codes):
        raise UserError(
            f"votes are of {len(votes)} records, codes of {len(codes)}; give one code a"
            " record."
        )
    power, scores = best_exponent(votes, codes.likelihood())
    return Calibration(power, float(np.mean(scores)))


def best_exponent(votes: FloatArray, likely: FloatArray) -> tuple[int, FloatArray]:
    """Return the likeliest exponent, and each code's log likelihood under it, (n,).

    ``likely`` (n, K) are the codes' `likelihood`.
    """
    tried = zip(EXPONENTS, _iterate_powers(votes), strict=False)
    scored = ((power, log_likelihood(proba, likely)) for power, proba in tried)
    return max(scored, key=lambda trial: float(np.mean(trial[1])))


def log_likelihood(proba: FloatArray, likely: FloatArray) -> FloatArray:
    """Return log sum_c P(code | c) p_c of each record, (n,), of (n, K) each.

    P(code | c) has a factor of each row's own: compare the same codes only.
    """
    return np.asarray(np.log(np.einsum("nk,nk->n", proba, likely)))


def posterior(proba: FloatArray, likely: FloatArray) -> FloatArray:
    """Return the posterior P(class | x, code), (n, K), of (n, K) each."""
    joint = proba * likely
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def _iterate_powers(votes: FloatArray) -> Iterator[FloatArray]:
    """Yield the probabilities under exponents 1, 2, 3, ..."""
    shares = to_simplex(votes)
    shares /= shares.max(axis=1, keepdims=True)
    sharp = np.ones_like(shares)
    while True:
        sharp = sharp * shares
        yield _floor_and_normalise(sharp)


def _floor_and_normalise(sharp: FloatArray) -> FloatArray:
    scale = (1 - _FLOOR) / sharp.sum(axis=1, keepdims=True)
    return np.asarray(sharp * scale + _FLOOR / sharp.shape[1])


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
    return Trial(name, params, *best_exponent(votes, likely))


def likeliest_trial(trials: Iterable[Trial]) -> Trial:
    """Return the trial that makes the codes likeliest; of equals the first."""
    return max(trials, key=lambda trial: trial.likelihood)


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
