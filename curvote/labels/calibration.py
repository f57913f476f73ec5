"""Calibration of votes by the likelihood of the codes, and choice of settings by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from curvote.errors import UserError
from curvote.labels.codes import Codes
from curvote.validate import FloatArray

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
    return max(scored, key=lambda one: float(np.mean(one[1])))


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
