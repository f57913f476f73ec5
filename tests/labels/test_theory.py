"""Risk, excess and their bounds where P(class | x) is known (VEC)."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.spatial import cKDTree
from scipy.stats import ncx2

from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.labels import encode
from curvote.systems.labels.method import theory


def drawn(rng: np.random.Generator) -> FloatArray:
    """Regression functions at some points, from near-ties to near-certainties."""
    n, size = int(rng.integers(1, 40)), int(rng.choice([2, 3, 10, 100]))
    return rng.dirichlet(np.full(size, 10 ** rng.uniform(-2, 2)), size=n)


def risk(eta: FloatArray, predicted: NDArray[np.int64]) -> float:
    """Return the exact risk of predicted places, (n,) or (r, n): (3), (10)."""
    return float(np.mean(1 - eta[np.arange(len(eta)), predicted]))


def best_k(n: int, epsilon: float, d: int) -> float:
    """Return the k that balances both parts of (36), up to a constant factor.

    eps^(-2d/(d+2)) n^(2/(d+2)), for epsilon of at most about 1 (appendix C.1). The text
    says r0 ~ eps (k/n)^(1/d) on the way: it is (k/n)^(1/d), the epsilon is the gap's.
    """
    return float(epsilon ** (-2 * d / (d + 2)) * n ** (2 / (d + 2)))


def excess_rate(n: int, epsilon: float, d: int, gamma: float = 0.0) -> float:
    """Return (n eps^2)^(-(1 + gamma)/(d + 2)): the rate of R - R* with `best_k`.

    ``gamma`` >= 0 is the exponent of Tsybakov's margin condition
    P(0 < eta* - eta_s < t) = O(t^gamma); 0 assumes nothing.
    """
    return float((n * epsilon**2) ** (-(1 + gamma) / (d + 2)))


def test_no_label_is_needed_for_the_risk() -> None:
    """It is what labels drawn from eta say in the mean, and Bayes is the least."""
    rng = np.random.default_rng(1)
    eta = rng.dirichlet(np.ones(4), size=50)
    predicted = rng.integers(4, size=50)
    labels = (rng.random((20_000, 50, 1)) > eta.cumsum(axis=1)[:, :-1]).sum(axis=2)
    wrong = (labels != predicted).mean(axis=1)
    se = wrong.std() / np.sqrt(len(wrong))
    assert abs(wrong.mean() - risk(eta, predicted)) < 4 * se
    assert risk(eta, eta.argmax(axis=1)) == pytest.approx(np.mean(1 - eta.max(axis=1)))


@pytest.mark.parametrize("seed", range(40))
def test_proposition_1(seed: int) -> None:
    """Excess is risk above Bayes, the mean over training sets; 0 for the best class."""
    rng = np.random.default_rng(seed)
    eta = drawn(rng)
    predicted = rng.integers(eta.shape[1], size=(3, len(eta)))
    above = risk(eta, predicted) - np.mean(1 - eta.max(axis=1))
    assert theory.excess_risk(eta, predicted) == pytest.approx(above, abs=1e-12)
    each = [theory.excess_risk(eta, one) for one in predicted]
    assert theory.excess_risk(eta, predicted) == pytest.approx(np.mean(each), abs=1e-12)
    assert min(each) >= 0
    assert theory.excess_risk(eta, eta.argmax(axis=1)) == 0


@pytest.mark.parametrize("seed", range(200))
def test_theorem_2_is_above_the_excess(seed: int) -> None:
    """For any outputs within delta of q + (p - q) eta, whatever p, q and eta."""
    rng = np.random.default_rng(seed)
    eta = drawn(rng)
    q, p = np.sort(rng.random(2))
    smoothed = q + (p - q) * eta
    reach = 10 ** rng.uniform(-4, 0.5, size=(len(eta), 1)) * (p - q)
    outputs = smoothed + reach * rng.uniform(-1, 1, size=eta.shape)
    delta = np.abs(outputs - smoothed).max(axis=1)
    bound = theory.excess_bound(eta, delta, p - q)
    assert theory.excess_risk(eta, outputs.argmax(axis=1)) <= bound
    assert bound == pytest.approx(theory.excess_bound(eta, delta / (p - q), 1.0))


def test_theorem_2_cannot_be_halved() -> None:
    """An error of delta on both sides reaches 2 delta / gap."""
    gap, lead = 0.3, 0.2
    eta = [[0.5 + lead / 2, 0.5 - lead / 2]]
    delta = [gap * lead / 2 + 1e-9]
    assert theory.excess_risk(eta, [1]) == pytest.approx(
        theory.excess_bound(eta, delta, gap)
    )
    assert theory.excess_bound(eta, [gap * lead / 2 - 1e-9], gap) == 0


def test_the_expectation_is_over_training_sets() -> None:
    """(20) of several is the mean of (20) of each."""
    rng = np.random.default_rng(3)
    eta, delta = rng.dirichlet(np.ones(3), size=20), rng.random((5, 20)) / 10
    each = [theory.excess_bound(eta, one, 0.5) for one in delta]
    assert theory.excess_bound(eta, delta, 0.5) == pytest.approx(np.mean(each))


class Circle:
    """K Gaussians on the unit circle: density, regression functions, slopes."""

    def __init__(self, size: int, sigma: float) -> None:
        angle = 2 * np.pi * np.arange(size) / size
        self.means = np.column_stack([np.cos(angle), np.sin(angle)])
        self.sigma = sigma
        # The steepest place is far out, between two neighbours.
        self.lipschitz = np.sin(np.pi / size) / (2 * sigma**2)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, Any]:
        """Return so many points and their classes."""
        labels = rng.integers(len(self.means), size=n)
        return self.means[labels] + self.sigma * rng.normal(size=(n, 2)), labels

    def eta(self, X: FloatArray) -> FloatArray:
        """P(class | x), (n, K)."""
        score = X @ self.means.T / self.sigma**2
        weight = np.exp(score - score.max(axis=1, keepdims=True))
        return weight / weight.sum(axis=1, keepdims=True)

    def radius(self, x: FloatArray, share: float) -> float:
        """The radius around x that holds a share of the distribution."""
        away = ((self.means - x) ** 2).sum(axis=1) / self.sigma**2

        def lacking(r: float) -> float:
            return float(ncx2.cdf((r / self.sigma) ** 2, 2, away).mean()) - share

        return float(brentq(lacking, 0, 10))


@pytest.mark.parametrize("size", [2, 3, 8, 32])
def test_the_slope_of_the_circle_is_what_the_bound_is_told(size: int) -> None:
    """No eta_j is steeper anywhere on a grid, and one is nearly as steep."""
    circle = Circle(size, 2 / size)
    at = np.linspace(-3, 3, 601)
    grid = np.stack(np.meshgrid(at, at, indexing="ij"), axis=-1).reshape(-1, 2)
    eta = circle.eta(grid)
    pull = circle.means[None, 0] - eta @ circle.means
    slopes = eta[:, 0] * np.linalg.norm(pull, axis=1) / circle.sigma**2
    assert 0.97 * circle.lipschitz < slopes.max() <= circle.lipschitz * (1 + 1e-12)


@pytest.mark.parametrize(("size", "k", "epsilon"), [(4, 200, 1.0), (16, 100, 2.0)])
def test_the_bound_of_neighbours_holds(size: int, k: int, epsilon: float) -> None:
    """(36) is above the measured error in 95 % of the points; Theorem 2 follows."""
    circle, rng, n = Circle(size, 2 / size), np.random.default_rng(size), 4000
    X, y = circle.draw(n, rng)
    points, _ = circle.draw(200, rng)
    codes = encode(y, range(size), epsilon, "vector", random_state=size)
    votes = codes.decode()[cKDTree(X).query(points, k)[1]].mean(axis=1)
    eta, gap = circle.eta(points), theory.vector_gap(epsilon)
    delta = gap * np.abs(votes - eta).max(axis=1)
    r0 = np.array([circle.radius(x, 2 * k / n) for x in points])
    bound = theory.knn_bound(k, size, epsilon, circle.lipschitz, r0)
    assert (delta <= bound).mean() >= 0.95
    assert theory.excess_risk(eta, votes.argmax(axis=1)) <= theory.excess_bound(
        eta, delta, gap
    )


def test_the_radius_holds_enough_neighbours() -> None:
    """(35): the k-th of n lies beyond r0 at most as often as it says."""
    rng, k, n = np.random.default_rng(9), 4, 100
    within = rng.binomial(n, 2 * k / n, size=20_000) < k
    assert within.mean() <= np.exp(-(1 - np.log(2)) * k)


def test_the_rule_for_k_balances_both_parts() -> None:
    """At best_k noise and distance are equal but for constants, for any n, eps, d."""
    for n, epsilon, d in [(100, 0.1, 2), (10**6, 0.5, 1), (10**4, 1.0, 20)]:
        k = best_k(n, epsilon, d)
        noise, distance = k**-0.5, epsilon * (k / n) ** (1 / d)
        assert noise == pytest.approx(distance)
        assert noise / epsilon == pytest.approx(excess_rate(n, epsilon, d))


def test_a_margin_makes_it_faster() -> None:
    """The exponent is -(1 + gamma)/(d + 2)."""
    one, other = (excess_rate(10**4, 0.5, 2, gamma=gamma) for gamma in (0, 1))
    assert other == pytest.approx(one**2)
    assert excess_rate(10**6, 0.5, 2) < excess_rate(10**4, 0.5, 2)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: theory.excess_risk([0.5, 0.5], [0]), "shape"),
        (lambda: theory.excess_risk([[1.0]], [0]), "shape"),
        (lambda: theory.excess_risk([[0.5, 0.6]], [0]), "sum to 1"),
        (lambda: theory.excess_risk([[0.5, 0.5]], [2]), "0 to 1"),
        (lambda: theory.excess_risk([[0.5, 0.5]], [0, 1]), "predicted"),
        (lambda: theory.excess_risk([[0.5, 0.5]], [0.0]), "whole numbers"),
        (lambda: theory.excess_bound([[0.5, 0.5]], [-1], 0.5), "delta"),
        (lambda: theory.excess_bound([[0.5, 0.5]], [1, 1], 0.5), "delta"),
        (lambda: theory.excess_bound([[0.5, 0.5]], [1], 0.0), "gap"),
        (lambda: theory.excess_bound([[0.5, 0.5]], [np.nan], 0.5), "delta"),
        (lambda: theory.vector_gap(0), "epsilon"),
        (lambda: theory.knn_bound(0, 2, 1.0, 1.0, 1.0), "k is"),
        (lambda: theory.knn_bound(1, 2, 1.0, 1.0, -1.0), "r0"),
        (lambda: theory.knn_bound(1, 2, 1.0, 1.0, 1.0, delta=0), "delta"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Any, said: str) -> None:
    """With the name of the argument."""
    with pytest.raises(UserError, match=said):
        call()
