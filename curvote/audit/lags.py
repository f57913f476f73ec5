"""Check that clients, or numbers of one client, share no noise at any distance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from curvote.audit.row import Finding
from curvote.validate import FloatArray

# Standard deviations: sums of bounded products go beyond once in 10^9 whole tables
# (Bernstein), for as few as ``LEAST`` pairs and millions of distances.
MOST = 8.5
LEAST = 1000
MOST_COLUMNS = 8
# Beyond a block of 65,536 clients.
MOST_ROWS = 70_000


def check_lags(residuals: FloatArray) -> Finding:
    """Correlate residuals (n, k) of one call at every lag.

    Both residuals and their distances from the middle: noise that is used again with
    another sign is the same noise.
    """
    n, k = residuals.shape
    columns = residuals[:, : min(k, MOST_COLUMNS)] - 0.5
    series = np.hstack([columns * np.sqrt(12), (np.abs(columns) - 0.25) * np.sqrt(48)])
    width = fft.next_fast_len(2 * n, real=True)
    turned = fft.rfft(series, width, axis=0)
    pairs = n - np.arange(n)
    for i in range(series.shape[1]):
        products = fft.irfft(turned[:, [i]].conj() * turned, width, axis=0)[:n]
        z = np.abs(products) / np.sqrt(np.maximum(pairs, 1))[:, None]
        z[0, i] = 0  # each with itself
        z[pairs < LEAST] = 0
        if z.max() > MOST:
            return Finding("lags", _lag_text(z, i, k))
    return Finding("lags")


def _lag_text(z: NDArray[np.float64], i: int, k: int) -> str:
    lag, j = np.unravel_index(int(np.argmax(z)), z.shape)
    where = "the numbers of one client" if lag == 0 else f"clients {lag} apart"
    half = min(k, MOST_COLUMNS)
    return (
        f"{where} share noise: numbers {i % half} and {int(j) % half} are correlated"
        f" by {z.max():.1f} standard deviations"
    )
