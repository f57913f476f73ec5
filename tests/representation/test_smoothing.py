"""Smoothing of curves at times of their own: scikit-fda's numbers, with NumPy alone."""

import numpy as np
import pytest
from skfda import FDataGrid
from skfda.misc.operators import LinearDifferentialOperator
from skfda.misc.regularization import L2Regularization
from skfda.preprocessing.smoothing import BasisSmoother
from skfda.representation.basis import BSplineBasis

from curvote.curves import smoothing


@pytest.mark.parametrize(
    ("domain", "points", "measured"),
    [((0, 24), 49, 30), ((0, 1), 150, 8), ((0, 9), 3, 2), ((1e3, 1e3 + 7), 20, 200)],
)
def test_curves_are_those_of_basis_smoother(domain, points, measured):
    """The same basis, penalty and times give the same curve, to 1e-9 of its size."""
    rng, grid = np.random.default_rng(0), np.linspace(*domain, points)
    times = np.sort(rng.uniform(*domain, (3, measured)), axis=1)
    values = np.sin(times) + rng.normal(size=times.shape)
    starts = np.arange(4) * measured
    found = smoothing.smooth(grid, starts, times.ravel(), values.reshape(-1, 1))
    smoother = BasisSmoother(
        BSplineBasis(
            domain_range=domain, n_basis=min(max(smoothing.ORDER, points), 32)
        ),
        smoothing_parameter=smoothing.PENALTY * (grid[-1] - grid[0]),
        regularization=L2Regularization(LinearDifferentialOperator(1)),
        return_basis=True,
    )
    for own, at, y in zip(found, times, values, strict=True):
        expected = smoother.fit_transform(FDataGrid(y[None], at))(grid)[0, :, 0]
        assert own == pytest.approx(expected, abs=1e-9 * np.abs(expected).max())


def test_each_curve_is_smoothed_by_itself(monkeypatch):
    """In whatever company and order; nothing beyond the grid; one value is a level."""
    rng, grid = np.random.default_rng(1), np.linspace(0, 9, 12)
    counts = np.array([12, 1, 0, 40, 3])
    times, starts = rng.uniform(0, 9, counts.sum()), np.append(0, np.cumsum(counts))
    times[:12] = grid
    values = rng.normal(size=(len(times), 1))
    curves = smoothing.smooth(grid, starts, times, values)
    assert np.array_equal(curves[0], values[:12, 0])
    assert np.allclose(curves[1], values[12, 0])
    assert np.isnan(curves[2]).all()
    monkeypatch.setattr(smoothing, "_CLIENTS", 2)
    assert np.array_equal(
        smoothing.smooth(grid, starts, times, values), curves, equal_nan=True
    )
    monkeypatch.setattr(smoothing, "_ROWS", 7)
    parted = smoothing.smooth(grid, starts, times, values)
    assert parted == pytest.approx(curves, abs=1e-12, nan_ok=True)
    mixed = np.append(rng.permutation(40) + 13, [13, 13])
    beyond = np.append(times[mixed[:40]], [-1, 10])
    again = smoothing.smooth(grid, np.array([0, 42]), beyond, values[mixed])
    assert again[0] == pytest.approx(curves[3], abs=1e-12)
