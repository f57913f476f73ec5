"""Table 1 of DTK, corrected, beside the four rates of (4)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.systems.transfer.method import phases

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
