"""The radius of DTK and its rates: the printed numbers, and what must hold anywhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curvote.base.errors import UserError
from curvote.systems.transfer.method import rates
from curvote.systems.transfer.method.weights import bandwidth_grid

sizes = st.lists(st.floats(1, 1e7), min_size=1, max_size=6)
one_epsilon = st.floats(1e-4, 1e3) | st.just(math.inf)
betas, dimensions = st.floats(0.05, 1), st.integers(1, 20)


def left(r: float, n: Any, epsilon: Any, gamma: Any, beta: float, d: int) -> float:
    """The left-hand side of (5), term by term."""
    total = 0.0
    for j, (size, budget, exponent) in enumerate(zip(n, epsilon, gamma, strict=True)):
        precision = min(size, (size * budget) ** 2 * r**d)
        total += precision * r ** (2 * beta * (exponent if j else 1) + d)
    return total


def test_the_two_settings_of_the_papers_readme() -> None:
    """With 500 records at two servers: r = 0.1, and 0.23587 with delta = n^-2."""
    assert rates.radius((500, 500), 1, 1, 0.5, 2) == pytest.approx(0.1, rel=1e-12)
    with_delta = rates.radius((500, 500), 1, 1, 0.5, 2, delta=500**-2.0)
    assert with_delta == pytest.approx(0.2358687, abs=1e-6)


@given(data=st.data(), n=sizes, beta=betas, d=dimensions)
@settings(deadline=None)
def test_the_radius_solves_its_equation(
    data: st.DataObject, n: list[float], beta: float, d: int
) -> None:
    """Whatever the sizes, budgets and exponents; with delta for (11)."""

    def each(values: Any) -> list[float]:
        found = st.lists(values, min_size=len(n), max_size=len(n))
        return list(data.draw(found))

    epsilon, gamma = each(one_epsilon), each(st.floats(0.05, 5))
    r = rates.radius(n, epsilon, gamma, beta, d)
    assert left(r, n, epsilon, gamma, beta, d) == pytest.approx(1, rel=1e-6)
    if math.isfinite(min(epsilon)):
        known = rates.radius(n, epsilon, gamma, beta, d, delta=1e-6)
        found = left(known, n, epsilon, gamma, beta, d)
        assert found == pytest.approx(math.log(2e6), rel=1e-6)


@given(n=sizes, epsilon=one_epsilon, beta=betas, d=dimensions)
@settings(deadline=None)
def test_more_records_or_a_larger_budget_never_hurt(
    n: list[float], epsilon: float, beta: float, d: int
) -> None:
    """Nor does another server, nor a better one."""
    r = rates.radius(n, epsilon, 1.5, beta, d)
    slack = r * (1 + 1e-9)
    assert rates.radius([2 * size for size in n], epsilon, 1.5, beta, d) <= slack
    assert rates.radius(n, 2 * epsilon, 1.5, beta, d) <= slack
    assert rates.radius([*n, 10], epsilon, 1.5, beta, d) <= slack
    if r < 1:
        assert rates.radius(n, epsilon, 1.2, beta, d) <= slack


def test_the_targets_gamma_does_not_count() -> None:
    """It is 1 by definition 2.3, and one number means all sources."""
    given = (100, 200, 300), 1, 0.5, 2
    first = rates.radius(given[0], given[1], [7, 2, 2], *given[2:])
    assert rates.radius(given[0], given[1], [np.nan, 2, 2], *given[2:]) == first
    assert rates.radius(given[0], given[1], 2, *given[2:]) == first


def test_a_public_servers_delta_does_not_count() -> None:
    """It adds no noise; without any noise (11) is (5)."""
    mixed = rates.radius((90, 90), (1, np.inf), 1, 0.5, 2, delta=(1e-4, 1e-12))
    assert mixed == rates.radius((90, 90), (1, np.inf), 1, 0.5, 2, delta=1e-4)
    free = rates.radius((90, 90), np.inf, 1, 0.5, 2, delta=1e-4)
    assert free == rates.radius((90, 90), np.inf, 1, 0.5, 2)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"n": [0, 5]}, "n holds"),
        ({"n": [np.nan, 5]}, "n holds"),
        ({"epsilon": [1, 0]}, "epsilon holds"),
        ({"epsilon": [1, np.nan]}, "epsilon holds"),
        ({"epsilon": [1, 2, 3]}, "epsilon has shape"),
        ({"gamma": -1}, "gamma holds"),
        ({"gamma": np.inf}, "gamma holds"),
        ({"beta": 1.5}, "beta is"),
        ({"d": 0}, "d is"),
        ({"delta": 0}, "delta is"),
        ({"delta": [0.1, 2]}, None),
        ({"delta": [np.nan, 0.1]}, "delta holds"),
    ],
)
def test_what_makes_no_sense_is_refused(
    changed: dict[str, Any], said: str | None
) -> None:
    """Each message names what was given; the least delta is what counts."""
    given = {"n": [5, 5], "epsilon": 1, "gamma": 1, "beta": 0.5, "d": 2} | changed
    if said is None:
        assert rates.radius(**given) > 0
        return
    with pytest.raises(UserError, match=said):
        rates.radius(**given)


def test_weights_are_those_of_the_paper() -> None:
    """(12) by hand: precision times r^(gamma beta), and their sum is 1."""
    h, n, epsilon, gamma = 0.3, np.array([50, 900]), np.array([1, 0.1]), [9, 2]
    precision = np.minimum(n, (n * epsilon) ** 2 * h**2)
    by_hand = precision * h ** (0.5 * np.array([1, 2]))
    found = rates.oracle_weights(n, epsilon, gamma, 0.5, 2, h=h)
    assert found == pytest.approx(by_hand / by_hand.sum())


def test_what_a_server_adds_ends_at_what_it_is_left_out_of() -> None:
    """Without it r is that of the others, at the same right-hand side."""
    n, delta = (100, 5000, 40), (1e-4, 1e-9, 1e-3)
    one = rates.added_server(n, 1, 1, 0.5, 3, server=1, delta=delta)
    assert one.together == rates.radius(n, 1, 1, 0.5, 3, delta=delta)
    assert one.without == rates.radius((100, 40), 1, 1, 0.5, 3, delta=1e-9)
    assert one.together < one.without
    with pytest.raises(UserError, match="sources are 1 to 2"):
        rates.added_server(n, 1, 1, 0.5, 3, server=0)


def test_privacy_costs_where_noise_outweighs_sampling() -> None:
    """S of section 4.2 is where n^2 epsilon^2 r^d is less than n."""
    n, epsilon = np.array([10, 1000, 1000, 1000]), np.array([1, 0.01, 1, np.inf])
    r = rates.radius(n, epsilon, 1, 0.5, 2)
    noised = n**2 * np.minimum(epsilon, 1e9) ** 2 * r**2 <= n
    found = rates.privacy_limited(n, epsilon, 2, r)
    assert found.tolist() == noised.tolist()
    assert 0 < found.sum() < 4


EQUAL: dict[str, Any] = {"n0": 300, "n": 200, "m": 9, "beta": 0.6, "d": 3, "gamma": 1.3}


@pytest.mark.parametrize("epsilon", [0.003, 0.02, 0.3, 4.0, math.inf])
@pytest.mark.parametrize("delta", [None, 1e-7])
def test_the_closed_form_is_the_general_rate_up_to_a_constant(
    epsilon: float, delta: float | None
) -> None:
    """Theorem 3.1 beside 3.4: a sum of two stands within a factor of its larger one."""
    n = [EQUAL["n0"], *[EQUAL["n"]] * EQUAL["m"]]
    general = rates.minimax_rate(n, epsilon, 1.3, 0.6, 3, delta=delta)
    closed = rates.equal_sources_rate(
        epsilon_0=epsilon, epsilon=epsilon, delta=delta, **EQUAL
    )
    constant = 2 ** (0.6 * 2)
    assert general / constant <= closed * (1 + 1e-9)
    assert closed <= general * constant
    if math.isfinite(epsilon):
        four = rates.equal_servers_rate(epsilon=epsilon, delta=delta, **EQUAL)
        assert closed <= four * (1 + 1e-9)
        assert four <= closed * constant * (1 + 1e-9)


def test_alone_and_without_privacy_the_general_rate_is_the_remarks() -> None:
    """Remarks 3.1 and 3.3 (with one source 3.2): exact for one, else to a constant."""
    n0, epsilon, beta, d = 400, 0.05, 0.5, 2
    alone = max(n0 ** (-1 / 3), (n0 * epsilon) ** (-2 / 5)) ** (2 * beta)
    assert rates.minimax_rate(n0, epsilon, 1, beta, d) == pytest.approx(alone)
    none = EQUAL | {"n0": n0, "m": 0, "beta": beta, "d": d}
    equal = rates.equal_sources_rate(epsilon_0=epsilon, epsilon=9.0, **none)
    assert equal == pytest.approx(alone)
    assert rates.no_privacy_rate(n0, 1, beta, d) == pytest.approx(n0 ** (-1 / 3))
    free = rates.no_privacy_rate((400, 7000), 2.0, beta, d)
    assert free == pytest.approx((400 + 7000 ** (3 / 4)) ** (-1 / 3))
    general = rates.minimax_rate((400, 7000), math.inf, 2.0, beta, d)
    assert free / 2 < general < 2 * free


def test_logarithms_cost_and_adaptation_costs_more() -> None:
    """Lower rate, upper rate, adaptive rate; the margin makes all of them smaller."""
    given = (5000, 8000, 9000), (1, 0.5, 2), 0.8, 0.5, 2
    lower = rates.minimax_rate(*given)
    upper = rates.minimax_rate(*given, delta=1e-8)
    cost = rates.adaptation_cost(*given, delta=1e-8)
    assert lower == pytest.approx(rates.excess_risk(rates.radius(*given), 0.5))
    power = 0.5 * 2 / (2 * 0.5 * 0.8 + 2)
    assert upper == pytest.approx(lower * math.log(1e8) ** power)
    count = len(bandwidth_grid(*given[:2], 2))
    together = 5000 + 8000 + 9000
    assert count == int(math.log(together) / 2) + 1 == 5
    logs = math.log(together * 5) * math.log(10 / 1e-8)
    assert cost == pytest.approx(max(logs**power, 5 ** (2 * 0.5 * 2 / 2)))
    assert rates.adaptive_rate(*given, delta=1e-8) == pytest.approx(
        min(1, lower * cost)
    )
    assert (
        rates.minimax_rate(*given, alpha=0)
        > lower
        > rates.minimax_rate(*given, alpha=2)
    )


def test_the_equal_case_of_adaptation_is_the_general_one() -> None:
    """Corollary 5.2 beside theorem 5.1, on the scale of theorem 3.1."""
    n = [EQUAL["n0"], *[EQUAL["n"]] * EQUAL["m"]]
    general = rates.adaptation_cost(n, 50, 1.3, 0.6, 3, delta=1e-7)
    equal = EQUAL | {"n0": 10**9, "n": 10**9}
    closed = rates.adaptive_equal_sources_rate(
        epsilon_0=50, epsilon=50, delta=1e-7, **equal
    ) / rates.equal_sources_rate(epsilon_0=50, epsilon=50, **equal)
    servers = [10**9] * 10
    assert closed == pytest.approx(
        rates.adaptation_cost(servers, 50, 1.3, 0.6, 3, delta=1e-7)
    )
    assert general > 1


def test_tiny_budgets_still_have_a_rate() -> None:
    """Nothing can be learnt: the rate is 1."""
    given = (3, 3), 1e-6, 1, 0.5, 2
    assert rates.minimax_rate(*given) == 1
    assert rates.adaptive_rate(*given, delta=0.01) == 1


@pytest.mark.parametrize("alpha", [-1, math.nan, math.inf])
def test_a_margin_is_not_below_nothing(alpha: float) -> None:
    """An exponent of at least 0."""
    with pytest.raises(UserError, match="alpha is"):
        rates.excess_risk(0.1, 0.5, alpha)


def test_lemma_1_bounds_what_it_is_about() -> None:
    """Two coins told by randomized response: their distance is below (15)."""
    epsilon, shift = 0.2, 0.02
    n = 1
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    true = (2 * keep - 1) * shift
    law = (0.5 + shift) * math.log(1 + 2 * shift) + (0.5 - shift) * math.log(
        1 - 2 * shift
    )
    given = {
        "n": [n, n],
        "epsilon": [epsilon, math.inf],
        "delta": [0.0, 0.0],
        "rho": [shift, 0.0],
        "divergence": [law, 0.0],
    }
    by_privacy = rates.total_variation(**given, private=[True, False])
    by_law = rates.total_variation(**given, private=[False, False])
    spent = 6 * epsilon * shift
    assert by_privacy == pytest.approx(math.sqrt(2 * spent * math.expm1(spent)))
    assert by_law == pytest.approx(math.sqrt(2 * law))
    assert true < min(by_privacy, by_law)
    leak = given | {"delta": [1e-3, 1e-3]}
    slack = 4 * math.exp(spent) * 1e-3 * shift
    found = rates.total_variation(**leak, private=[True, False])
    assert found == pytest.approx(by_privacy + slack)
    huge = given | {"n": [10**6, 1]}
    assert rates.total_variation(**huge, private=[True, False]) == 1


def test_a_public_source_is_one_of_infinite_budget() -> None:
    """The first line of corollary 3.3(c) prints 1/r = 2.15 where (5) has 46.4."""
    known = {"n0": 1000, "gamma": 1.0, "beta": 0.5, "d": 2}
    found = rates.public_source(n1=10, n2=10**5, epsilon=0.3, **known)
    assert (found.case, found.ends) == ("c", ())
    assert 1 / found.r == pytest.approx(46.4, abs=0.05)
    assert pytest.approx(2.15, abs=0.01) == 10 ** (1 / 3)
    assert rates.public_source(n1=10**6, n2=10**5, epsilon=1, **known).case == "a"
    with pytest.raises(UserError, match="more than 1000 records"):
        rates.public_source(n1=10, n2=900, epsilon=1, **known)


def test_the_ends_of_case_b_are_where_the_private_source_pays() -> None:
    """Below the first it stays behind the public one; above the second it is free."""
    known = {"n0": 100, "n1": 10**4, "n2": 10**8, "gamma": 1.2, "beta": 0.5, "d": 2}

    def inverse(epsilon: float) -> float:
        return 1 / rates.public_source(epsilon=epsilon, **known).r

    ends = rates.public_source(epsilon=1, **known).ends
    public = 1 / rates.radius((100, 10**4), (1, math.inf), 1.2, 0.5, 2)
    free = 1 / rates.radius((100, 10**4, 10**8), math.inf, 1.2, 0.5, 2)
    assert inverse(ends[0] / 30) == pytest.approx(public, rel=0.01)
    assert inverse(ends[0] * 30) > 2 * public
    assert inverse(ends[1] / 30) < free / 2
    assert inverse(ends[1] * 3) == pytest.approx(free, rel=1e-5)
