"""Figure 2's own problems: curvote's batches against a loop over scikit-learn.

Run with ``python -m benchmarks.bench_figure_2``; one BLAS thread. A sample of what the
pipeline fits: some replicates' reports at three epsilons, each the problems of 50
weak classifiers, of 50 parts and of all 3,000 reports together. scikit-learn has no
`dwd`: its loop minimises the same objective with scipy, and does not count.
Fails when a learner that counts, or all that count together, is less than 20 times
faster than the loop.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.history import record
from curvote.base.entropy import SeededEntropy
from curvote.client.report import Reporter
from curvote.curves.basis import projection, roughness_matrix
from curvote.data.simulation.simulated import generate
from curvote.learning.votes import disjoint_parts, draw_subsets, fit_problems

Array = NDArray[np.float64]
Problem = tuple[Array, Array]
EPSILONS, REPLICATES, LEAST_RATIO = (0.5, 2.0, 10.0), 3, 20
GRID = np.linspace(0.0, 1.0, 100)
BASIS = projection("bspline", 4, GRID)
ROUGHNESS = roughness_matrix(BASIS)
PENALTY = 0.01


def problems(seed: int, epsilon: float) -> list[Problem]:
    """Return the 101 problems of one replicate."""
    rng = np.random.default_rng(seed)
    curves, labels = generate(rng, 3000)
    signs = np.where(labels == 1, 1.0, -1.0)
    reporter = Reporter.build(4, epsilon, "laplace", "equal", {})
    noise = SeededEntropy(seed), SeededEntropy(seed + 1000)
    z, y = reporter.release(np.tanh(BASIS.apply(curves)), signs, *noise, study=True)
    rows = [
        *draw_subsets(rng, 500, 50, 50),
        *disjoint_parts(rng, 3000, 50),
        np.arange(3000),
    ]
    return [(z[i], y[i]) for i in rows]


def dwd(x: Array, y: Array) -> None:
    """Minimise the mean distance-weighted loss and the slope's roughness."""
    inverse = np.linalg.inv(BASIS.gram)
    penalty = PENALTY * inverse @ ROUGHNESS @ inverse

    def objective(theta: Array) -> tuple[float, Array]:
        u = y * (theta[0] + x @ theta[1:])
        far = u > 0.5
        loss = np.where(far, 1 / (4 * np.where(far, u, 1)), 1 - u)
        bend = y * np.where(far, -1 / (4 * np.where(far, u, 1) ** 2), -1) / len(y)
        smooth = penalty @ theta[1:]
        slope = np.concatenate([[bend.sum()], x.T @ bend + 2 * smooth])
        return float(loss.mean() + theta[1:] @ smooth), slope

    minimize(objective, np.zeros(x.shape[1] + 1), jac=True, method="L-BFGS-B")


LOOPS: dict[str, Callable[[Array, Array], Any]] = {
    "logistic": lambda x, y: LogisticRegression(C=np.inf).fit(x, y),
    "svm": lambda x, y: SVC(kernel="linear").fit(x, y),
    "cg": lambda x, y: LinearDiscriminantAnalysis().fit(x, y),
    "dwd": dwd,
}


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def loop(fit: Callable[[Array, Array], Any], given: list[Problem]) -> None:
    for x, y in given:
        fit(x, y)


def main() -> int:
    sample = [
        problem
        for epsilon in EPSILONS
        for seed in range(REPLICATES)
        for problem in problems(seed, epsilon)
    ]
    public = {"gram": BASIS.gram, "roughness": ROUGHNESS}
    total, right = np.zeros(2), True
    print(f"{len(sample)} problems of figure 2, one BLAS thread")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a loop over noise does not converge on
        for name, fit in LOOPS.items():
            fit_problems(name, sample[:5], **public)  # imports
            quick = seconds(lambda name=name: fit_problems(name, sample, **public))
            slow = seconds(lambda fit=fit: loop(fit, sample))
            counts = name != "dwd"
            total += counts * np.array([quick, slow])
            right &= slow / quick >= LEAST_RATIO or not counts
            other = "scikit-learn" if counts else "scipy"
            print(
                f"{name:9} batch {quick:7.3f} s   {other:12} {slow:8.2f} s"
                f"   ratio {slow / quick:6.0f}"
            )
    ratio = total[1] / total[0]
    what = "together, without dwd"
    missed = record("figure_2", {what: ratio}, least={what: LEAST_RATIO})
    return 0 if right and not missed else 1


if __name__ == "__main__":
    sys.exit(main())
