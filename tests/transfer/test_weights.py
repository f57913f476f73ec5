"""Weights in closed form: what an optimiser finds, for any shape and any scale."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize, minimize_scalar

from curvote.base.errors import UserError
from curvote.systems.transfer.method.weights import best_target_weight, best_weights

FloatArray = np.ndarray


def ratio(w: FloatArray, t: FloatArray, s: FloatArray) -> float:
    """What is maximised."""
    return float((w @ t) ** 2 / (w**2 @ s))


def searched(t: FloatArray, s: FloatArray) -> float:
    """The largest ratio by gradient steps from all corners' middle, on both sides."""

    def lost(w: FloatArray, sign: float) -> tuple[float, FloatArray]:
        a, v = sign * w @ t, w**2 @ s
        return -a / v**0.5, -sign * t / v**0.5 + a * w * s / v**1.5

    start = np.full(len(t), 1 / len(t))
    found = [
        minimize(
            lost,
            start,
            args=(sign,),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, 1)] * len(t),
            options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 500},
        ).fun
        for sign in (1, -1)
    ]
    return max(-min(found), 0) ** 2


def test_an_optimiser_finds_nothing_better() -> None:
    """And nothing worse: 1,000 draws of two to six servers agree to 1e-6."""
    rng = np.random.default_rng(7)
    for _ in range(1000):
        t = rng.normal(rng.normal(), 1, rng.integers(2, 7))
        s = np.exp(rng.normal(0, 0.7, t.shape))
        found, w = best_weights(t, s)
        assert ratio(w, t, s) == pytest.approx(found, rel=1e-12)
        assert searched(t, s) == pytest.approx(found, rel=1e-6, abs=1e-9)


def test_an_optimiser_finds_nothing_better_where_proportions_are_kept() -> None:
    """One free weight: the best of a fine grid, refined."""
    rng = np.random.default_rng(8)
    grid = np.linspace(0, 1, 101)
    for _ in range(300):
        t, s = rng.normal(0.3, 1, 4), np.exp(rng.normal(0, 1, 4))
        u = rng.random(3) * (rng.random(3) < 0.8) + [1e-3, 0, 0]

        def of(w0: float, t=t, s=s, u=u) -> float:  # type: ignore[no-untyped-def]
            return -ratio(np.array([w0, *((1 - w0) * u / u.sum())]), t, s)

        start = grid[np.argmin([of(w0) for w0 in grid])]
        ends = max(start - 0.01, 0), min(start + 0.01, 1)
        found = minimize_scalar(of, bounds=ends, method="bounded", options={"xatol": 0})
        top, w = best_target_weight(t, s, u)
        assert top == pytest.approx(max(-found.fun, -of(ends[0]), -of(ends[1])), 1e-6)
        assert ratio(w, t, s) == pytest.approx(top)
        assert w[1:] * u.sum() == pytest.approx((1 - w[0]) * u)


NUMBERS = st.floats(-1e80, 1e80)
SPREADS = st.floats(1e-80, 1e80)


@given(
    t=arrays(float, (3, 4), elements=NUMBERS),
    s=arrays(float, 4, elements=SPREADS | st.just(np.inf)),
)
@settings(deadline=None, max_examples=200)
def test_weights_are_weights_whatever_is_given(t: FloatArray, s: FloatArray) -> None:
    """At least 0, of sum 1; each point as if it were alone; no warning."""
    found, w = best_weights(t, s)
    assert (found >= 0).all()
    assert not np.isnan(found).any()
    assert (w >= 0).all()
    assert w.sum(axis=-1) == pytest.approx(np.ones(3))
    for row, one, own in zip(t, found, w, strict=True):
        alone, alone_w = best_weights(row, s)
        assert alone == one
        assert np.array_equal(alone_w, own)


@given(factor=st.floats(1e-3, 1e3), sign=st.sampled_from([-1, 1]))
@settings(max_examples=30)
def test_units_do_not_matter(factor: float, sign: int) -> None:
    """Values in other units have the same weights, and their ratio its unit."""
    t, s = np.array([1.0, -0.4, 2.0]), np.array([1.0, 2.0, 0.3])
    first, w = best_weights(t, s)
    again, same = best_weights(sign * factor * t, s / factor)
    assert same == pytest.approx(w)
    assert again == pytest.approx(first * factor**3)


def test_variances_may_stand_once_for_all_points() -> None:
    """A hundred thousand points, one variance a server or one a point."""
    t = np.random.default_rng(2).normal(size=(100_000, 4))
    s = np.array([1.0, 2.0, 3.0, 4.0])
    found, w = best_weights(t, s)
    again, same = best_weights(t, np.broadcast_to(s, t.shape))
    assert found.shape == (100_000,)
    assert w.shape == t.shape
    assert np.array_equal(found, again)
    assert np.array_equal(w, same)
    between, shares = best_target_weight(t, s, [1, 2, 3])
    assert shares.sum(axis=-1) == pytest.approx(np.ones(100_000))
    assert (between <= found * (1 + 1e-12)).all()


def test_where_nothing_is_seen_precision_decides() -> None:
    """All values 0: the ratio is 0, and the weights are 1/s."""
    found, w = best_weights([0.0, 0.0], [1.0, 3.0])
    assert found == 0
    assert w == pytest.approx([0.75, 0.25])
    assert best_weights([0.0, 0.0], [np.inf, np.inf])[1] == pytest.approx([0.5, 0.5])
    assert best_weights([5.0, 1.0], [np.inf, 2.0]) == (0.5, pytest.approx([0, 1]))
    found, w = best_target_weight([0.0, 0.0, 0.0], [1.0, 4.0, 4.0], [1, 1])
    assert found == 0
    assert w == pytest.approx([2 / 3, 1 / 6, 1 / 6])


@pytest.mark.parametrize(
    ("t", "s"), [([1, np.nan], [1, 1]), ([1, 2], [1, 0]), ([1, 2], [1, np.nan])]
)
def test_what_is_no_number_is_refused(t: list[float], s: list[float]) -> None:
    """Values are finite, variances above 0."""
    with pytest.raises(UserError):
        best_weights(t, s)


@pytest.mark.parametrize("u", [[1], [0, 0], [1, -1], [1, np.nan]])
def test_proportions_are_shares_of_the_sources(u: list[float]) -> None:
    """One for each source, none below 0, some above."""
    with pytest.raises(UserError, match="u holds"):
        best_target_weight([1, 2, 3], [1, 1, 1], u)
