"""The learners: many problems in one batch against a loop over scikit-learn.

Run with ``python -m benchmarks.bench_learners``; one BLAS thread, as in the pipeline.
Fails when a batch is less than 20 times faster than the loop, or the decision
functions disagree. The loop is timed on some of the problems, its solvers as they
come; the agreement is judged at a tight tolerance.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.history import record
from curvote.learning import learners
from curvote.learning.learners.registry import Fits

FloatArray = NDArray[np.float64]
Build = Callable[[], Any]

REPLICATES, B, N, D = 40, 50, 50, 4
LOOPED, JUDGED = 1_000, 100  # libsvm takes long to the last digits
REPEATS = 10
LEAST_RATIO, LARGEST_DIFFERENCE = 20, 1e-4
# Of the noise; the last, epsilon 10, is the least private that the paper shows.
SCALES = (0.2, 1.0)
# As it comes, and to the last digits
COMPETITORS: dict[str, tuple[Build, Build]] = {
    "logistic": (
        lambda: LogisticRegression(C=np.inf),
        lambda: LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10),
    ),
    "svm": (
        lambda: SVC(kernel="linear"),
        lambda: SVC(kernel="linear", tol=1e-7, max_iter=200_000),
    ),
    "lda": (LinearDiscriminantAnalysis, LinearDiscriminantAnalysis),
}


def noisy_problems(seed: int, scale: float) -> tuple[FloatArray, FloatArray]:
    """Return reports [B, n, d] of a logistic model, Laplace noised, and labels."""
    rng = np.random.default_rng(seed)
    z = np.tanh(rng.normal(size=(REPLICATES * B, N, D)))
    chance = 1 / (1 + np.exp(-(z @ np.array([3.0, -2.0, 1.0, 0.0]) + 0.5)))
    labels = np.where(rng.random(z.shape[:2]) < chance, 1.0, -1.0)
    return z + rng.laplace(scale=scale, size=z.shape), labels


def loop(build: Build, reports: FloatArray, labels: FloatArray) -> list[Any]:
    """Return the model of each problem, fitted one after the other."""
    return [build().fit(x, y) for x, y in zip(reports, labels, strict=True)]


def seconds(work: Callable[[], Any]) -> float:
    """Return the processor time, which a busy machine disturbs less than a clock."""
    start = time.process_time()
    work()
    return time.process_time() - start


def timed(name: str, reports: FloatArray, labels: FloatArray) -> tuple[float, float]:
    """Return the least seconds a problem of batch and loop, which take turns.

    The least, as what other work adds says nothing of either. Without a competitor the
    loop's are 0.
    """
    quick, slow = [], []
    for part in np.array_split(np.arange(LOOPED), REPEATS):
        quick.append(seconds(lambda: learners.fit(name, reports, labels)))
        if name in COMPETITORS:
            work = partial(loop, COMPETITORS[name][0], reports[part], labels[part])
            slow.append(seconds(work) / len(part))
    return min(quick) / len(reports), min(slow, default=0.0)


def disagreement(
    name: str, fits: Fits, reports: FloatArray, labels: FloatArray
) -> float:
    """Return the largest difference of the decision functions, on regular problems.

    Those that the competitor gave up are left out.
    """
    regular = np.flatnonzero(~fits.flagged[:JUDGED])
    x, coef = reports[regular], fits.coef[regular]
    found = (x @ coef[:, :, None])[:, :, 0] + fits.intercept[regular][:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        models = loop(COMPETITORS[name][1], x, labels[regular])
    solved = [getattr(model, "fit_status_", 0) == 0 for model in models]
    pairs = zip(models, x, strict=True)
    exact = np.stack([model.decision_function(one) for model, one in pairs])
    return float(np.abs(found - exact)[solved].max())


def compare(
    name: str, reports: FloatArray, labels: FloatArray
) -> tuple[bool, float | None]:
    """Print a line; return whether a learner is quick and right, and its ratio."""
    fits = learners.fit(name, reports, labels)
    quick, slow = timed(name, reports, labels)
    line = f"{name:12}{quick * 1e6:9.1f}"
    right = bool(np.isfinite(fits.coef).all() and np.isfinite(fits.intercept).all())
    if name in COMPETITORS:
        difference = disagreement(name, fits, reports, labels)
        line += f"{slow * 1e6:12.1f}{slow / quick:9.0f}{difference:14.1e}"
        right &= slow / quick >= LEAST_RATIO and difference <= LARGEST_DIFFERENCE
    print(f"{line}{'' if right else '   below'}")
    return right, slow / quick if name in COMPETITORS else None


def main() -> int:
    print(f"{REPLICATES} x {B} problems, n = {N}, d = {D}, one BLAS thread")
    print("microseconds a problem; the largest difference of decision functions")
    found = {}
    with threadpool_limits(1):
        for scale in SCALES:
            print(f"\nLaplace noise of scale {scale} (epsilon {2 * (D + 1) / scale:g})")
            print(
                f"{'learner':12}{'batch':>9}{'loop':>12}{'ratio':>9}{'difference':>14}"
            )
            problems = noisy_problems(1, scale)
            names = [*COMPETITORS, "svm_squared", "dwd", "cg", "centroid"]
            found |= {(name, scale): compare(name, *problems) for name in names}
    ratios = {f"{n}, noise {s:g}": r for (n, s), (_, r) in found.items() if r}
    record("learners", ratios, more=list(ratios))
    return 0 if all(right for right, _ in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
