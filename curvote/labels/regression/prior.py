"""Noise on a client's number: one noised value of it, or a report for the histogram."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from curvote import validate
from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.mechanisms.square_wave import SquareWave
from curvote.validate import FloatArray

# Equal cells of the bounds: far finer than the bins that any budget up to 5 pays for.
CELLS: Final = 64
# Reports this near are counted as one, so that time does not grow with their number.
_FINE = 1 << 10
_ROUNDS = 1000
# A round that makes the reports no likelier than this, each, was the last.
_GAIN = 1e-6


def report_labels(labels: FloatArray, epsilon: float, entropy: Entropy) -> FloatArray:
    """Return one square wave report of each of ``labels`` (n,) in [-1, 1].

    With all of ``epsilon``: whoever sends one sends nothing else.
    """
    return SquareWave(epsilon=epsilon).randomize(labels, entropy)


def estimate_histogram(reports: FloatArray, epsilon: float) -> FloatArray:
    """Return the estimated shares (64,) of equal cells of [-1, 1], which sum to 1.

    The smoothed maximum likelihood of the reports (Li et al. 2020, section 5.5: EMS).
    """
    near, counts = np.unique(np.rint(reports * _FINE) / _FINE, return_counts=True)
    likelihood = _cell_likelihood(SquareWave(epsilon=epsilon), near)
    return _smoothed_likelihood_shares(likelihood, counts / len(reports))


def _cell_likelihood(mechanism: SquareWave, reports: FloatArray) -> FloatArray:
    """Return P(report | cell) up to a factor, (n, cells): exact for a uniform cell."""
    half = mechanism.window.half * mechanism.scale
    edges = np.arange(CELLS + 1) / CELLS
    upper = np.minimum(edges[1:], reports[:, None] + half)
    lower = np.maximum(edges[:-1], reports[:, None] - half)
    inside = np.clip(upper - lower, 0, None) * CELLS
    return np.asarray(1 + (float(mechanism.worst_ratio()) - 1) * inside)


def _smoothed_likelihood_shares(
    likelihood: FloatArray, frequencies: FloatArray
) -> FloatArray:
    """Return the shares after rounds of expectation, maximisation and smoothing.

    ``frequencies`` are the shares of the reports.
    """
    shares, reached = np.full(CELLS, 1 / CELLS), -np.inf
    for _ in range(_ROUNDS):
        chances = likelihood @ shares
        shares = _smooth_neighbours(shares * ((frequencies / chances) @ likelihood))
        before, reached = reached, float(frequencies @ np.log(chances))
        if reached - before < _GAIN:
            break
    return shares


def _smooth_neighbours(shares: FloatArray) -> FloatArray:
    """Return the shares averaged with their neighbours', 1 2 1; they sum to 1."""
    padded = np.pad(shares, 1, mode="edge")
    mixed = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
    return np.asarray(mixed / mixed.sum())


def check_prior(prior: ArrayLike) -> FloatArray:
    """Return the stated shares of equal cells, scaled to sum to 1.

    Fewer than two cells, a negative share and no positive one are a UserError.
    """
    shares = validate.finite(prior=prior)
    if shares.ndim != 1 or len(shares) < 2:
        raise UserError(
            f"prior has shape {shares.shape}; it holds the shares of two or more equal"
            " cells of the bounds: (m,)."
        )
    if (shares < 0).any() or not shares.any():
        raise UserError("prior must hold no negative number, and one above 0.")
    return np.asarray(shares / shares.sum())
