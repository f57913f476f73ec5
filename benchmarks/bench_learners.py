"""Logistic fits: 2,000 problems in one batch against a loop over scikit-learn.

Run with ``python -m benchmarks.bench_learners``; one BLAS thread, as in the pipeline.
Fails when the batch is less than 30 times faster or the coefficients disagree.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from curvote.server import learners
from curvote.server.learners.fits import Fits

FloatArray = NDArray[np.float64]

PROBLEMS, N, D = 2_000, 50, 4
REPEATS = 5
LEAST_RATIO, LARGEST_DIFFERENCE = 30, 1e-6


def noisy_problems(seed: int) -> tuple[FloatArray, FloatArray]:
    """Return reports [B, n, d] of a logistic model, Laplace noised, and labels."""
    rng = np.random.default_rng(seed)
    z = np.tanh(rng.normal(size=(PROBLEMS, N, D)))
    chance = 1 / (1 + np.exp(-(z @ np.array([3.0, -2.0, 1.0, 0.0]) + 0.5)))
    labels = np.where(rng.random((PROBLEMS, N)) < chance, 1.0, -1.0)
    return z + rng.laplace(scale=0.2, size=z.shape), labels


def loop(
    reports: FloatArray, labels: FloatArray, **options: Any
) -> tuple[float, FloatArray]:
    """Return the seconds and [B, 1 + d] coefficients of one fit after the other."""
    theta = np.zeros((len(reports), 1 + reports.shape[2]))
    start = time.perf_counter()
    for row, x, y in zip(theta, reports, labels, strict=True):
        model = LogisticRegression(C=np.inf, **options).fit(x, y)
        row[:] = [*model.intercept_, *model.coef_[0]]
    return time.perf_counter() - start, theta


def batch(reports: FloatArray, labels: FloatArray) -> tuple[float, Fits]:
    """Return the median seconds of some repeats, and the fits."""
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        fits = learners.fit("logistic", reports, labels)
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds)), fits


def main() -> int:
    reports, labels = noisy_problems(seed=1)
    with threadpool_limits(1):
        learners.fit("logistic", reports[:10], labels[:10])  # imports
        quick, fits = batch(reports, labels)
        slow, _ = loop(reports, labels)
        regular = ~fits.flagged
        exact = {"solver": "newton-cholesky", "tol": 1e-10}
        newton, theta = loop(reports[regular], labels[regular], **exact)
    found = np.column_stack([fits.intercept, fits.coef])
    difference = np.abs(found[regular] - theta).max()
    print(f"{PROBLEMS} logistic problems, n = {N}, d = {D}, one BLAS thread")
    print(f"batch                      {quick:8.3f} s (median of {REPEATS})")
    print(f"scikit-learn, lbfgs        {slow:8.3f} s, ratio {slow / quick:.0f}")
    print(f"scikit-learn, Newton       {newton:8.3f} s, ratio {newton / quick:.0f}")
    print(f"largest difference         {difference:8.1e} (Newton, not flagged)")
    print(f"flagged                    {fits.flagged.sum():8d}")
    print(f"all finite                 {bool(np.isfinite(found).all())!s:>8}")
    right = slow / quick >= LEAST_RATIO and difference <= LARGEST_DIFFERENCE
    return 0 if right and np.isfinite(found).all() else 1


if __name__ == "__main__":
    sys.exit(main())
