"""Budgets add up: sequential, parallel, zero-concentrated, and by privacy losses."""

import math

import numpy as np
import pytest
from scipy import stats

from curvote.base import accounting
from curvote.base.errors import UserError
from curvote.base.privacy import ZCDP, Budget
from curvote.mechanisms import make
from curvote.mechanisms.gaussian import GaussianNoise

DELTA = 1e-6


def gaussian_delta(epsilon: float, ratio: float) -> float:
    """Return theorem 8 of Balle & Wang (2018)."""
    above, below = ratio / 2 - epsilon / ratio, -ratio / 2 - epsilon / ratio
    return stats.norm.cdf(above) - math.exp(epsilon) * stats.norm.cdf(below)


def signs_delta(epsilon: float, each: float, n: int) -> float:
    """Return the exact delta of n randomized signs of epsilon ``each``."""
    keep = 1 / (1 + math.exp(-each))
    loss = (2 * np.arange(n + 1) - n) * each
    excess = np.maximum(1 - np.exp(epsilon - loss), 0)
    return float(stats.binom(n, keep).pmf(np.arange(n + 1)) @ excess)


def converted(rho: float, delta: float, order: float) -> float:
    """Return the epsilon of rho-zCDP by its Renyi divergence of one order."""
    rest = math.log(1 / delta) + order * math.log1p(-1 / order) - math.log(order - 1)
    return order * rho + rest / (order - 1)


def test_what_releases_of_one_server_cost_together() -> None:
    """The rho add, and never more than the sum of what each costs; deltas add up."""
    noise = GaussianNoise(30.0, 2.0, 1e-5)
    one = Budget(2.0, 1e-5), noise.rho
    assert accounting.compose_releases([one]) == one[0]
    for k in (2, 3, 10):
        found = accounting.compose_releases([one] * k)
        assert found.delta == pytest.approx(k * 1e-5)
        known = ZCDP(k * noise.rho).to_budget(k * 1e-5)
        assert found.epsilon == pytest.approx(known.epsilon)
        assert found.epsilon < 2 * k
        exact = gaussian_delta(found.epsilon, math.sqrt(2 * noise.rho * k))
        assert exact <= found.delta
        unknown = [*[one] * (k - 1), (one[0], None)]
        assert accounting.compose_releases(unknown).epsilon == 2 * k
    assert accounting.compose_releases([(Budget(1.0), None)] * 2) == Budget(2.0)


def test_budgets_compose():
    """One client's releases add up; those of different clients do not."""
    one, two = Budget(1, 1e-6), Budget(2.5, 1e-7)
    assert one + two == Budget(3.5, 1e-6 + 1e-7)
    assert one | two == two | one == Budget(2.5, 1e-6)
    assert (one | one) + two == one + two


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf])
def test_zcdp_is_a_budget(bad):
    """Rho lies strictly between 0 and infinity, and adds up."""
    assert ZCDP(0.5) + ZCDP(0.25) == ZCDP(0.75)
    with pytest.raises(UserError, match="rho"):
        ZCDP(bad)


@pytest.mark.parametrize("rho", [1e-6, 1e-3, 0.1, 1, 30])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
def test_zcdp_conversion_is_the_best_over_orders(rho, delta):
    """No order gives less; Bun & Steinke's closed form gives more, Gaussians less."""
    budget = ZCDP(rho).to_budget(delta)
    orders = 1 + np.geomspace(1e-6, 1e9, 40_001)
    best = min(converted(rho, delta, order) for order in orders.tolist())
    assert best * (1 - 1e-6) - 1e-12 <= budget.epsilon <= max(best, 0) + 1e-12
    assert budget.epsilon < rho + 2 * math.sqrt(rho * math.log(1 / delta))
    assert gaussian_delta(budget.epsilon, math.sqrt(2 * rho)) <= delta


@pytest.mark.parametrize("delta", [0, 1, -1, math.nan])
def test_zcdp_needs_a_delta(delta):
    """Without a delta in (0, 1) there is no epsilon."""
    with pytest.raises(UserError, match="delta"):
        ZCDP(1).to_budget(delta)


def test_a_generous_delta_leaves_a_budget():
    """Where delta alone would do, epsilon is tiny but above 0."""
    assert 0 < ZCDP(1e-12).to_budget(0.5).epsilon < 1e-9


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_a_label_counts_in_full(n_classes):
    """Randomized response of epsilon 1 loses 1.0; the library's relation says less."""
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution as library

    losses = accounting.randomized_response_losses(1, n_classes)
    assert losses.epsilon(0) == pytest.approx(1, abs=1e-9)
    assert losses.delta(0.99) > 1e-3
    uniform = n_classes / (math.e + n_classes - 1)
    relation = NeighboringRelation.REPLACE_SPECIAL
    special = library.from_randomized_response(
        uniform, n_classes, neighboring_relation=relation
    )
    assert special.get_epsilon_for_delta(0) < 0.9


def test_labels_by_the_mechanism_agree():
    """A mechanism's own worst loss is the accountant's, to within one step."""
    mechanism = make("binary_rr", epsilon=0.7)
    ours = accounting.pure_dp_losses(0.7).epsilon(0)
    assert mechanism.worst_log_ratio() <= ours < 0.7 + 2e-4


@pytest.mark.parametrize("n", [1, 3, 20])
def test_randomized_signs(n):
    """The loss of n signs is the binomial law's, rounded up by at most a step each."""
    losses = accounting.pure_dp_losses(0.5).times(n)
    for epsilon in (0, 0.3, 0.9, 4.9):
        exact = signs_delta(epsilon, 0.5, n)
        above = signs_delta(epsilon - 1e-4 * n, 0.5, n)
        assert exact * (1 - 1e-9) <= losses.delta(epsilon) <= above + 1e-12
    assert losses.epsilon(1e-9) <= 0.5 * n + 1e-6


def test_less_than_plain_addition():
    """Twenty labels of epsilon .1 cost far less than 2 where delta is allowed."""
    assert accounting.pure_dp_losses(0.1).times(20).epsilon(DELTA) < 1.85


@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
def test_laplace(epsilon):
    """Laplace noise has delta(e) = 1 - exp((e - epsilon)/2)."""
    losses = accounting.laplace_losses(epsilon)
    for share in (0, 0.3, 0.9):
        exact = -math.expm1((share - 1) * epsilon / 2)
        assert losses.delta(share * epsilon) == pytest.approx(exact, abs=1e-4)
        assert losses.delta(share * epsilon) >= exact * (1 - 1e-9)
    assert losses.epsilon(1e-9) == pytest.approx(epsilon, abs=2e-4)


@pytest.mark.parametrize("d", [1, 5])
@pytest.mark.parametrize("n", [1, 4])
def test_gaussian(d, n):
    """Gaussian noise costs what its calibration says; n times, sqrt(n) in the ratio."""
    mechanism = make("gaussian", epsilon=1, delta=DELTA, d=d)
    ratio = 2 * math.sqrt(d) / mechanism.sigma
    losses = accounting.gaussian_losses(mechanism.sigma, 2 * math.sqrt(d)).times(n)
    found = losses.epsilon(DELTA)
    assert gaussian_delta(found, ratio * math.sqrt(n)) <= DELTA
    assert gaussian_delta(found - 1e-3, ratio * math.sqrt(n)) > DELTA
    if n == 1:
        assert found == pytest.approx(1, abs=1e-3)


def test_different_releases_compose():
    """A label, a value and a record together: less than their sum, more than one."""
    label, value = (
        accounting.randomized_response_losses(0.5, 4),
        accounting.laplace_losses(0.5),
    )
    record = accounting.gaussian_losses(10, 2)
    together = (label + value + record).to_budget(DELTA)
    alone = [losses.epsilon(DELTA) for losses in (label, value, record)]
    assert max(alone) < together.epsilon < sum(alone)
    assert together.delta == DELTA


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: accounting.pure_dp_losses(0), "epsilon is 0"),
        (lambda: accounting.pure_dp_losses(math.nan), "epsilon is nan"),
        (lambda: accounting.laplace_losses(101), "composed up to 100"),
        (lambda: accounting.randomized_response_losses(1, 1), "n_classes is 1"),
        (lambda: accounting.gaussian_losses(0, 1), "sigma is 0"),
        (lambda: accounting.gaussian_losses(1, math.inf), "diameter is inf"),
        (lambda: accounting.gaussian_losses(0.01, 1), "0.071 of the diameter"),
        (lambda: accounting.pure_dp_losses(1).times(0), "n is 0"),
        (lambda: accounting.pure_dp_losses(1).epsilon(1), "delta is 1"),
        (lambda: accounting.pure_dp_losses(1).delta(-1), "epsilon is -1"),
        (lambda: accounting.gaussian_losses(1, 1).to_budget(0), "no epsilon holds"),
    ],
)
def test_refusals(call, message):
    """What is no release, or asks for the impossible, is a UserError."""
    with pytest.raises(UserError, match=message):
        call()
