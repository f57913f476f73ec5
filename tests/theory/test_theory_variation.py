"""Total variation of the noised uniform law, against draws and densities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curvote.advise import mrma
from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.mechanisms import per_coordinate

levels = st.floats(1e-3, 1e3)


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_it_is_the_share_that_real_noise_carries_out(d: int, epsilon: float) -> None:
    """Draws of the mechanism leave the cube as often as said."""
    n = 200_000
    z = np.random.default_rng(5).uniform(-1, 1, size=(n, d))
    noised = per_coordinate("laplace", d, epsilon).randomize(z, SeededEntropy(6))
    outside = (np.abs(noised) > 1).any(axis=1).mean()
    expected = mrma.total_variation(d, epsilon)
    error = np.sqrt(expected * (1 - expected) / n)
    assert abs(outside - expected) < 5 * error + 1e-5


@given(epsilon=st.floats(0.05, 50))
def test_it_is_half_the_l1_norm_of_the_densities(epsilon: float) -> None:
    """On a line: the noised density is (F(z + 1) - F(z - 1))/2, F the noise's law."""
    scale = 2 / epsilon

    def law(x: np.ndarray) -> np.ndarray:
        tail = np.exp(-np.abs(x) / scale) / 2
        return np.where(x < 0, tail, 1 - tail)

    edges = [-1 - 40 * scale, *np.linspace(-1 - 3 * scale, -1, 40)]
    edges += [*np.linspace(-1, 1, 80), *np.linspace(1, 1 + 3 * scale, 40)]
    edges.append(1 + 40 * scale)
    nodes, weights = np.polynomial.legendre.leggauss(30)
    half = np.diff(edges)[:, None] / 2
    z = np.array(edges[:-1])[:, None] + half * (1 + nodes)
    noised = (law(z + 1) - law(z - 1)) / 2
    distance = (half * weights * np.abs(np.where(np.abs(z) < 1, 0.5, 0) - noised)).sum()
    assert 2 * mrma.total_variation(1, epsilon) == pytest.approx(distance, abs=1e-6)


@given(d=st.integers(1, 200), epsilon=levels)
def test_it_grows_with_dimension_and_noise(d: int, epsilon: float) -> None:
    """Between 0 and 1."""
    context = mrma.total_variation(d, epsilon)
    assert 0 < context <= 1
    assert mrma.total_variation(d + 1, epsilon) >= context
    assert mrma.total_variation(d, epsilon / 2) >= context


def test_the_ends() -> None:
    """Nothing moves without noise; with endless noise nothing stays."""
    assert mrma.total_variation(3, 1e12) == pytest.approx(9e-12, rel=1e-3)
    assert mrma.total_variation(1, 1e-9) == pytest.approx(1, abs=1e-8)
    assert mrma.total_variation(1, 1.0) == pytest.approx(1 - np.exp(-1))


@pytest.mark.parametrize(
    ("d", "epsilon"), [(0, 1.0), (1.5, 1.0), (2, 0.0), (2, np.nan)]
)
def test_what_makes_no_sense_is_refused(d: int, epsilon: float) -> None:
    """Dimensions are whole, epsilon is positive."""
    with pytest.raises(UserError, match="is"):
        mrma.total_variation(d, epsilon)
