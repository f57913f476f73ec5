"""Table 1 of DTK, corrected, beside the four rates of (4)."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curvote.base.errors import UserError
from curvote.systems.transfer.method import phases
from tests.transfer.hospitals import radius

KNOWN: dict[str, Any] = {
    "n0": 20_000,
    "n": 1000,
    "m": 40,
    "beta": 0.25,
    "d": 2,
    "gamma": 1.2,
}


def drawn(rng: np.random.Generator) -> dict[str, Any]:
    """A setting with n <= n0 <= m n."""
    n, m = int(10 ** rng.uniform(1.5, 5)), int(10 ** rng.uniform(0.2, 2.5))
    return {
        "n0": int(n * m ** rng.random()),
        "n": n,
        "m": m,
        "beta": float(rng.uniform(0.05, 1)),
        "d": int(rng.integers(1, 9)),
        "gamma": float(rng.choice([1.0, rng.uniform(0.1, 3)], p=[0.05, 0.95])),
    }


def around(setting: dict[str, Any]) -> np.ndarray:
    """400 epsilons over all regimes, none within 2 % of an end."""
    ends = np.array([one.epsilon for one in phases.switches(**setting)])
    at = np.geomspace(ends.min() / 20, ends.max() * 20, 400)
    known = np.array(phases.regimes(**setting)[1:])
    known = known[(known > 0) & np.isfinite(known)]
    return at[(np.abs(np.log(at[:, None] / known)) > 0.02).all(axis=1)]


def same(setting: dict[str, Any], *, as_printed: bool = False) -> bool:
    """Whether table and brute force agree everywhere."""
    at = around(setting)
    table = phases.dominant(epsilon=at, as_printed=as_printed, **setting)
    return bool(
        np.array_equal(table, phases.dominant_by_comparison(epsilon=at, **setting))
    )


def test_the_corrected_table_is_what_brute_force_finds() -> None:
    """In 300 of 300 settings; as printed in fewer."""
    rng = np.random.default_rng(5)
    settings = [drawn(rng) for _ in range(300)]
    assert [s for s in settings if not same(s)] == []
    printed = sum(same(setting, as_printed=True) for setting in settings)
    assert 100 < printed < 280


def test_the_misprinted_end_has_another_exponent() -> None:
    """eps(21) = 1.432 where the paper's own formula gives 3.941."""
    assert phases.regimes(**KNOWN).eps_21 == pytest.approx(1.432, abs=5e-4)
    assert phases.regimes(**KNOWN, as_printed=True).eps_21 == pytest.approx(3.94, 1e-3)


def test_the_row_below_1_may_begin_with_the_target() -> None:
    """Between eps(2) and eps(21), which the printed table leaves out."""
    setting = {"n0": 216614, "n": 74409, "m": 3, "beta": 0.97, "d": 4, "gamma": 0.85}
    ends = phases.regimes(**setting)
    at = (ends.eps_2 * ends.eps_21) ** 0.5
    assert ends.eps_2 < at < ends.eps_21
    assert phases.dominant(epsilon=at, **setting) == "NPt"
    assert phases.dominant_by_comparison(epsilon=at, **setting) == "NPt"
    assert phases.dominant(epsilon=at, **setting, as_printed=True) == "Ps"


def test_ends_are_where_the_rates_change_hands() -> None:
    """Every switch is an end of the table, and 1 is left at eps(1) only."""
    rng = np.random.default_rng(6)
    for setting in (drawn(rng) for _ in range(100)):
        ends = np.array(phases.regimes(**setting)[1:])
        found = phases.switches(**setting)
        for one, after in pairwise(found):
            assert one.after == after.before
            assert one.epsilon <= after.epsilon
        for one in found:
            assert np.isclose(ends, one.epsilon, rtol=1e-9, atol=0).any()
        assert [one.before for one in found].count("1") == 1
        assert found[0].epsilon == pytest.approx(ends[0], rel=1e-9)


def test_the_table_is_continuous_at_gamma_1() -> None:
    """eps(11) of gamma = 1 is the limit of its neighbours' decisions."""
    at = np.geomspace(1e-4, 10, 100)
    for n0 in (2000, 20_000):
        row = [
            phases.dominant(epsilon=at, **KNOWN | {"n0": n0, "gamma": gamma})
            for gamma in (1 - 1e-9, 1.0, 1 + 1e-9)
        ]
        assert np.array_equal(row[0], row[1])
        assert np.array_equal(row[1], row[2])


def test_risk_is_what_the_deciding_rate_says() -> None:
    """Log excess risk by (4) is the deciding line; 0 where nothing is learnt."""
    at = np.geomspace(1e-6, 10, 50)
    known = {line.name: line.at(np.log(at)) for line in phases.rate_lines(**KNOWN)}
    names = phases.dominant_by_comparison(epsilon=at, **KNOWN)
    risks = phases.log_risk(at, **KNOWN, alpha=1)
    for place, name in enumerate(names):
        level = known[name][place] if name in known else 0
        assert risks[place] == pytest.approx(-0.25 * 2 * level)


def test_one_epsilon_gives_one_word() -> None:
    """A text for a number, an array for an array."""
    assert phases.dominant(epsilon=1e-9, **KNOWN) == "1"
    assert phases.dominant(epsilon=100, **KNOWN) == "NPs"
    assert phases.dominant_by_comparison(epsilon=[1e-9, 100], **KNOWN).tolist() == [
        "1",
        "NPs",
    ]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"n0": 999}, "n0 is 999"),
        ({"n0": 40_001}, "n <= n0 <= m n"),
        ({"n0": 1, "n": 1}, "n0 is 1"),
        ({"gamma": 0}, "gamma is 0"),
        ({"beta": 2}, "beta is 2"),
        ({"d": 0}, "d is 0"),
    ],
)
def test_the_table_is_for_its_sizes_only(changed: dict[str, Any], said: str) -> None:
    """Corollary 3.2's assumptions are asked for; brute force needs none on n0."""
    with pytest.raises(UserError, match=said):
        phases.regimes(**KNOWN | changed)
    if "n0" in changed:
        assert phases.dominant_by_comparison(epsilon=1.0, **KNOWN | changed)


@pytest.mark.parametrize("epsilon", [0, -1, np.nan, [1, 0]])
def test_an_epsilon_is_above_0(epsilon: Any) -> None:
    """In both forms."""
    for form in (phases.dominant, phases.dominant_by_comparison):
        with pytest.raises(UserError, match="epsilon"):
            form(epsilon=epsilon, **KNOWN)


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
