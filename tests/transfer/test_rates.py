"""The radius of DTK: the printed numbers, and what must hold anywhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curvote.base.errors import UserError
from tests.transfer.hospitals import radius

sizes = st.lists(st.floats(1, 1e7), min_size=1, max_size=6)
one_epsilon = st.floats(1e-4, 1e3) | st.just(math.inf)
betas, dimensions = st.floats(0.05, 1), st.integers(1, 20)


def left_hand_side(
    r: float, n: Any, epsilon: Any, gamma: Any, beta: float, d: int
) -> float:
    """The left-hand side of (5), term by term."""
    total = 0.0
    for j, (size, budget, exponent) in enumerate(zip(n, epsilon, gamma, strict=True)):
        precision = min(size, (size * budget) ** 2 * r**d)
        total += precision * r ** (2 * beta * (exponent if j else 1) + d)
    return total


def test_the_two_settings_of_the_papers_readme() -> None:
    """With 500 records at two servers: r = 0.1, and 0.23587 with delta = n^-2."""
    assert radius((500, 500), 1, 1, 0.5, 2) == pytest.approx(0.1, rel=1e-12)
    with_delta = radius((500, 500), 1, 1, 0.5, 2, delta=500**-2.0)
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
    r = radius(n, epsilon, gamma, beta, d)
    assert left_hand_side(r, n, epsilon, gamma, beta, d) == pytest.approx(1, rel=1e-6)
    if math.isfinite(min(epsilon)):
        known = radius(n, epsilon, gamma, beta, d, delta=1e-6)
        found = left_hand_side(known, n, epsilon, gamma, beta, d)
        assert found == pytest.approx(math.log(2e6), rel=1e-6)


@given(n=sizes, epsilon=one_epsilon, beta=betas, d=dimensions)
@settings(deadline=None)
def test_more_records_or_a_larger_budget_never_hurt(
    n: list[float], epsilon: float, beta: float, d: int
) -> None:
    """Nor does another server, nor a better one."""
    r = radius(n, epsilon, 1.5, beta, d)
    slack = r * (1 + 1e-9)
    assert radius([2 * size for size in n], epsilon, 1.5, beta, d) <= slack
    assert radius(n, 2 * epsilon, 1.5, beta, d) <= slack
    assert radius([*n, 10], epsilon, 1.5, beta, d) <= slack
    if r < 1:
        assert radius(n, epsilon, 1.2, beta, d) <= slack


def test_the_targets_gamma_does_not_count() -> None:
    """It is 1 by definition 2.3, and one number means all sources."""
    given = (100, 200, 300), 1, 0.5, 2
    first = radius(given[0], given[1], [7, 2, 2], *given[2:])
    assert radius(given[0], given[1], [np.nan, 2, 2], *given[2:]) == first
    assert radius(given[0], given[1], 2, *given[2:]) == first


def test_a_public_servers_delta_does_not_count() -> None:
    """It adds no noise; without any noise (11) is (5)."""
    mixed = radius((90, 90), (1, np.inf), 1, 0.5, 2, delta=(1e-4, 1e-12))
    assert mixed == radius((90, 90), (1, np.inf), 1, 0.5, 2, delta=1e-4)
    free = radius((90, 90), np.inf, 1, 0.5, 2, delta=1e-4)
    assert free == radius((90, 90), np.inf, 1, 0.5, 2)


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
        assert radius(**given) > 0
        return
    with pytest.raises(UserError, match=said):
        radius(**given)
