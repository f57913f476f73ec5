"""Named bases computed with NumPy alone: the same as scikit-fda's, and nothing else."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from skfda import FDataBasis

from curvote.base.errors import UserError
from curvote.curves.basis import (
    BASES,
    Projection,
    basis_matrices,
    bspline_functions,
    bspline_slopes,
    check_projection,
    grid_projection,
    identity,
    orthonormal,
    projection,
    roughness_matrix,
)

Ends = tuple[float, float, int]
GRIDS = [(0.0, 1.0, 9), (-3.0, 250.0, 101), (1.7e9, 1.7e9 + 86_400, 49)]
SPLINES = [
    (order, size, ends)
    for ends in GRIDS
    for order in range(1, 7)
    for size in (1, 2, 4, 5, 7, 14)
    if order <= size < ends[2]
]
FOURIER = [(d, ends) for ends in GRIDS for d in (1, 3, 7, 41) if d < ends[2]]


def close(found: np.ndarray, wanted: np.ndarray) -> bool:
    """Say whether entries agree to 1e-9 of the largest."""
    return bool(np.abs(found - wanted).max() <= 1e-9 * np.abs(wanted).max())


@pytest.mark.parametrize(("order", "size", "ends"), SPLINES)
def test_splines_are_those_of_scikit_fda(order: int, size: int, ends: Ends) -> None:
    """Matrix and Gram matrix, of every order that scikit-fda has, and orthonormal."""
    found = projection("bspline", size, np.linspace(*ends), order)
    own = basis_matrices(found, ends[2])
    assert close(own.matrix, found.matrix)
    assert close(own.gram, found.gram)
    check_projection(found)
    check_projection(orthonormal(found))


@pytest.mark.parametrize(("size", "ends"), FOURIER)
def test_fourier_is_that_of_scikit_fda(size: int, ends: Ends) -> None:
    """Which is orthonormal as it is; its order of functions is scikit-fda's."""
    found = projection("fourier", size, np.linspace(*ends))
    assert close(basis_matrices(found, ends[2]).matrix, found.matrix)
    check_projection(found)
    check_projection(orthonormal(found))


@pytest.mark.parametrize("ends", GRIDS)
@pytest.mark.parametrize(
    ("name", "size", "derivative"),
    [("bspline", 7, 1), ("bspline", 6, 2), ("fourier", 7, 1), ("fourier", 5, 2)],
)
def test_derivatives_and_channels_are_those_of_scikit_fda(name, size, derivative, ends):
    """Its derivative of the projected curve; each channel by itself, as JSON tells."""
    grid, rng = np.linspace(*ends), np.random.default_rng(0)
    curves = rng.normal(size=(3, 3, len(grid)))
    found = projection(name, size, grid, derivative=derivative)
    functions = BASES[name](found.domain, size, 4)
    coefficients = projection(name, size, grid).apply(curves[0])
    wanted = FDataBasis(functions, coefficients).derivative(order=derivative)
    wanted = wanted.coefficients[:, int(name == "fourier") :]
    assert close(found.apply(curves[0]), wanted)
    straight = orthonormal(found)
    norm = ((wanted @ found.gram) * wanted).sum(axis=1)
    assert np.allclose((straight.apply(curves[0]) ** 2).sum(axis=1), norm, rtol=1e-9)
    for one in (found, straight):
        both = one.stacked(("x", "y", "z"))
        for other in (one, both, both.single):
            check_projection(other)
            assert roughness_matrix(other).shape == other.gram.shape
        by_channel = [one.apply(channel) for channel in curves.swapaxes(0, 1)]
        assert close(both.apply(curves.reshape(3, -1)), np.hstack(by_channel))
        for row, column, value in ((0, -1, 1e-30), (-1, -1, 9.0)):
            mixed = both.matrix.copy()
            mixed[row, column] = value
            with pytest.raises(UserError, match="multiplies its curve by no other"):
                check_projection(replace(both, matrix=mixed))
        with pytest.raises(UserError, match="2 channels, each by itself"):
            check_projection(replace(both, channels=("x", "y")))
    with pytest.raises(UserError, match=r"no basis|not that of basis"):
        check_projection(replace(found, derivative=3 - derivative))


@pytest.mark.parametrize("order", [2, 3, 4, 9])
def test_slopes_are_the_derivatives_of_splines(order: int) -> None:
    """By differences, also of an order that scikit-fda cannot integrate."""
    knots, step = np.linspace(0, 3, 7), 1e-6
    points = np.linspace(0.013, 2.987, 50)
    above, below = (bspline_functions(points + s, knots, order) for s in (step, -step))
    assert np.allclose(
        (above - below) / (2 * step), bspline_slopes(points, knots, order), atol=1e-6
    )
    assert np.allclose(bspline_functions(points, knots, order).sum(axis=0), 1)


@pytest.mark.parametrize(
    "given", [identity(1), identity(7), grid_projection(np.linspace(2, 5, 40))]
)
def test_what_is_no_basis_of_functions_is_recognised(given: Projection) -> None:
    """Feature vectors, and curves by their values."""
    check_projection(given)
    with pytest.raises(UserError):
        check_projection(replace(given, matrix=2 * given.matrix))
    with pytest.raises(UserError):
        check_projection(replace(given, gram=2 * given.gram))


SPLINE = projection("bspline", 6, np.linspace(0, 1, 40))
TURN = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]


@pytest.mark.parametrize(
    "given",
    [
        replace(SPLINE, matrix=SPLINE.matrix * (1 + 1e-7)),
        replace(SPLINE, matrix=np.eye(6, 40)),
        replace(SPLINE, matrix=SPLINE.matrix[::-1]),
        replace(SPLINE, gram=np.eye(6)),
        replace(SPLINE, gram=SPLINE.gram * np.nan),
        replace(SPLINE, matrix=SPLINE.matrix * np.nan),
        replace(SPLINE, order=3),
        replace(SPLINE, size=7),
        replace(SPLINE, name="fourier", size=6),
        replace(SPLINE, name="identity"),
        replace(SPLINE, name="wavelet"),
        replace(SPLINE, domain=(0.0, 1.0000001)),
        replace(SPLINE, domain=(1.0, 0.0)),
        replace(SPLINE, domain=(1e15, 1e15)),
        replace(orthonormal(SPLINE), matrix=orthonormal(SPLINE).matrix[::-1]),
        replace(orthonormal(SPLINE), matrix=TURN @ orthonormal(SPLINE).matrix),
        replace(orthonormal(SPLINE), gram=SPLINE.gram),
        replace(identity(4), size=10**9),
        replace(identity(4), domain=(0.0, 4.0)),
        replace(identity(4), order=4),
    ],
)
def test_what_is_no_named_basis_is_refused(given: Projection) -> None:
    """A free matrix, another order, domain or size, and turned coordinates."""
    with pytest.raises(UserError):
        check_projection(given)


def test_equally_rough_functions_may_be_turned_others_may_not() -> None:
    """The eigenproblem leaves rotations in an eigenspace open, and signs."""
    steps = projection("bspline", 5, np.linspace(0, 1, 50), order=1)
    straight = orthonormal(steps)  # of order 1: every slope is 0
    turned = np.linalg.qr(np.ones((5, 5)) + np.eye(5))[0]
    check_projection(replace(straight, matrix=turned @ straight.matrix))
    signs = np.diag([1.0, -1.0, 1.0, -1.0, 1.0, 1.0])
    check_projection(
        replace(orthonormal(SPLINE), matrix=signs @ orthonormal(SPLINE).matrix)
    )


def test_the_client_needs_neither_scikit_fda_nor_scipy_for_it() -> None:
    """Imported alone, it loads NumPy and nothing that integrates for it."""
    code = "import sys, curvote.curves.basis; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert not {"scipy", "skfda", "pandas", "sklearn"} & set(done.stdout.split())


def test_a_grid_with_rounded_points_is_no_grid_of_a_task() -> None:
    """Studies take it; a client, who sees only its ends and its size, cannot."""
    rough = projection("bspline", 5, np.linspace(0, 1, 100).round(5))
    with pytest.raises(UserError, match="equidistant"):
        check_projection(rough)
