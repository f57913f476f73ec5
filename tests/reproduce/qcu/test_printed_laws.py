"""The laws of the paper against draws made from its words, and its stated numbers."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from curvote.papers.qcu import laws
from curvote.papers.registry import reproductions
from curvote.papers.rows import select
from tests.reproduce_rows import comparison

MECHANISMS = list(laws.LOOKS)
Array = NDArray[np.float64]

N = 10_000
VALUES = np.array([0.0, 0.305, 0.79, 1.0])
PLACES = np.linspace(-0.05, 1.05, 23)


def direct(name: str, x: float, epsilon: float, rng: np.random.Generator) -> Array:
    """Return N kept draws as the paper describes them, by another way."""
    if name in {"pm_01", "sw_01"}:
        high, low, half = laws.window_shape(name, epsilon)
        start = min(max(x - half, 0), 1 - 2 * half)
        at = rng.random(40 * N)
        dense = high * ((at >= start) & (at <= start + 2 * half))
        kept = rng.random(40 * N) * high < np.where(dense > 0, dense, low)
        return at[kept][:N]
    if name == "exponential":
        weights = np.exp(-epsilon * np.abs(x - np.arange(100) / 100))
        return rng.choice(np.arange(100) / 100, N, p=weights / weights.sum())
    if name == "k_rr":
        others = [i / 100 for i in range(101) if abs(i / 100 - x) > 1e-9]
        keep = math.exp(epsilon) / (99 + math.exp(epsilon))
        return np.where(rng.random(N) < keep, x, rng.choice(others, N))
    tried = x + noise(name, epsilon, 40 * N, rng)
    return tried[(tried >= 0) & (tried <= 1)][:N]


def noise(name: str, epsilon: float, n: int, rng: np.random.Generator) -> Array:
    """Return the noise that is added."""
    if name == "laplace":
        return rng.laplace(0, 1 / epsilon, n)
    log = math.log(2 / 0.052)
    sigma = math.sqrt(2) / 2 * (math.sqrt(log + epsilon) + math.sqrt(log)) / epsilon
    return rng.normal(0, sigma, n)


def differ(law: Array, drawn: Array) -> bool:
    """Say whether draws are not of a law, which is P(output <= each place)."""
    found = (drawn[:, None] <= PLACES).mean(axis=0)
    error = np.sqrt(np.maximum(law * (1 - law), 1e-12) / len(drawn))
    return bool((np.abs(found - law) > 4.5 * error + 1e-9).any())


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_law_is_that_of_draws_made_by_another_way(name: str) -> None:
    """And so are the draws that it makes itself."""
    rng = np.random.default_rng(3)
    for epsilon in (0.7, 4.0):
        printed = laws.paper_law(name, epsilon)
        upto = printed.law(VALUES).cdf(PLACES)
        for i, x in enumerate(VALUES):
            assert not differ(upto[i], direct(name, x, epsilon, rng))
            assert not differ(upto[i], printed.draw(np.full(N, x), rng))


def test_a_law_of_another_epsilon_is_noticed() -> None:
    """The comparison above can fail: epsilon 2 instead of 1.4."""
    rng = np.random.default_rng(3)
    for name in MECHANISMS[:-1]:
        upto = laws.paper_law(name, 2.0).law(VALUES).cdf(PLACES)
        assert any(
            differ(upto[i], direct(name, x, 1.4, rng)) for i, x in enumerate(VALUES)
        )


@pytest.mark.parametrize("name", MECHANISMS)
def test_all_outputs_lie_within_the_unit_interval(name: str) -> None:
    """And some of their law is the same for a value and for many."""
    law = laws.paper_law(name, 2.0).law(VALUES)
    assert law.cdf([1.0]) == pytest.approx(1)
    assert law.below([0.0]) == pytest.approx(0)
    some = law.select(np.array([2, 0]))
    assert some.cdf(PLACES) == pytest.approx(law.cdf(PLACES)[[2, 0]])


def test_k_rr_keeps_the_value_itself_on_no_level() -> None:
    """With e^2/(99 + e^2); its own level, where it has one, is no other output."""
    outputs, masses = laws.rr_table(VALUES, 2.0, 99)
    keep = math.exp(2) / (99 + math.exp(2))
    for i, x in enumerate(VALUES):
        assert masses[i, outputs[i] == x].sum() == pytest.approx(keep)
        others = masses[i, outputs[i] != x]
        least = (1 - keep) / (101 - (x != 0.305))
        assert others[others > 0] == pytest.approx(least)


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_every_redraw_counts_as_a_wrong_answer(name: str) -> None:
    """The share of the answers that count, against counting them one by one."""
    rng = np.random.default_rng(5)
    x, epsilon, n = np.array([[0.3, 0.95]]), 1.0, 4000
    answers = 0
    for value in np.repeat(x[0], n):
        while not 0 <= value + noise(name, epsilon, 1, rng)[0] <= 1:
            answers += 1
    law = laws.paper_law(name, epsilon)
    inside = np.column_stack([law.inside(column) for column in x.T])
    assert n / (n + answers) == pytest.approx(laws.paper_share(inside)[0], rel=0.05)
    assert laws.paper_share(np.ones((3, 2))) == pytest.approx(1)


def test_figure_4_states_what_the_papers_readme_derives() -> None:
    """Epsilon 2, theta .3; the exponential spends half of epsilon as published."""
    rows = select(comparison("qcu-figure-4"), setting="theta=0.3", epsilon=2.0)
    found = {one["method"]: (one["curvote"], one["corrected"]) for one in rows}
    same = {"laplace": 45.12, "pm_01": 85.28, "sw_01": 82.71, "k_rr": 62.75}
    for name, value in same.items():
        assert found[name] == pytest.approx((value, value), abs=0.005)
    assert found["exponential"] == pytest.approx((66.30, 71.83), abs=0.005)


def test_figure_4_where_the_paper_is_wrong_about_pm() -> None:
    """At theta .1 and epsilon 2 the square wave leads, and PM soon after."""
    entry = reproductions()["qcu-figure-4"]
    said = list(entry.conclusions(comparison("qcu-figure-4")))
    assert "epsilon 2: sw_01 from theta 0.1, pm_01 from theta 0.13" in said[2]


def test_figure_2_needs_more_than_is_printed() -> None:
    """Laplace 5.365 and not 5.2, PM 1.386 and not 1.8."""
    rows = select(comparison("qcu-figure-2"), quantity="value")
    found = {one["method"]: (one["published"], one["curvote"]) for one in rows}
    assert found["laplace"] == (5.2, pytest.approx(5.365, abs=5e-4))
    assert found["pm_01"] == (1.8, pytest.approx(1.386, abs=5e-4))
