"""The promises of the public representation: basis, projection, rescaling."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from curvote.base.errors import UserError
from curvote.curves import basis as bases
from curvote.curves.basis import identity, orthonormal, projection
from curvote.curves.encoding import rescale, volunteer_constants

Array = NDArray[np.float64]
Grid = tuple[float, float, int]

CASES: list[tuple[str, int, int, Grid]] = [
    ("bspline", 4, 4, (0, 1, 100)),
    ("bspline", 6, 4, (0, 8, 256)),
    ("bspline", 7, 3, (-2, 5, 40)),
    ("bspline", 5, 2, (100, 101, 24)),
    ("bspline", 5, 1, (0, 1, 30)),
    ("fourier", 5, 4, (0, 8, 256)),
    ("fourier", 7, 4, (-1, 1, 33)),
    ("fourier", 1, 4, (0, 1, 10)),
]


def _curves(n: int, points: int) -> Array:
    return np.random.default_rng(3).normal(size=(n, points)).cumsum(axis=1)


def _functions(name: str, size: int, order: int, domain: tuple[float, float]) -> Any:
    return bases.BASES[name](domain, size, order)


@pytest.mark.parametrize(("name", "size", "order", "ends"), CASES)
def test_the_matrix_projects_as_scikit_fda_does(name, size, order, ends):
    """One matrix product gives the coefficients that FDataGrid.to_basis gives."""
    from skfda import FDataGrid

    grid = np.linspace(*ends)
    curves = _curves(8, len(grid))
    found = projection(name, size, grid, order)
    functions = _functions(name, size, order, found.domain)
    wanted = FDataGrid(curves, grid).to_basis(functions)
    np.testing.assert_allclose(found.apply(curves), wanted.coefficients, atol=1e-8)
    np.testing.assert_allclose(found.gram, functions.gram_matrix(), atol=1e-12)
    assert found.matrix.shape == (size, len(grid))


@pytest.mark.parametrize(("name", "size", "order", "ends"), CASES)
def test_a_curve_of_the_space_keeps_its_coefficients(name, size, order, ends):
    """Projecting phi_1..phi_d gives the identity."""
    grid = np.linspace(*ends)
    found = projection(name, size, grid, order)
    values = _functions(name, size, order, found.domain)(grid)[..., 0]
    np.testing.assert_allclose(found.apply(values), np.eye(size), atol=1e-8)


@pytest.mark.parametrize(("name", "size", "order", "ends"), CASES)
def test_orthonormal_coordinates_keep_inner_products(name, size, order, ends):
    """Euclidean products of the new coefficients are L2 products of the curves."""
    grid = np.linspace(*ends)
    plain = projection(name, size, grid, order)
    curves = _curves(6, len(grid))
    old, new = plain.apply(curves), orthonormal(plain).apply(curves)
    np.testing.assert_allclose(new @ new.T, old @ plain.gram @ old.T, rtol=1e-8)


@pytest.mark.parametrize("size", [4, 6, 9])
def test_orthonormal_coordinates_go_from_smooth_to_rough(size: int) -> None:
    """The roughness matrix is diagonal and increasing; the constant comes first."""
    grid = np.linspace(0, 2, 400)
    plain = projection("bspline", size, grid)
    values = _functions("bspline", size, 4, plain.domain)(grid)[..., 0]
    products = orthonormal(plain).apply(values)
    functions = np.linalg.solve(products, values)
    slopes = np.gradient(functions, grid, axis=1)
    roughness = np.trapezoid(slopes[:, None] * slopes[None], grid)
    diagonal = np.diag(roughness)
    assert np.all(np.diff(diagonal) > 0)
    np.testing.assert_allclose(roughness, np.diag(diagonal), atol=0.02 * diagonal[-1])
    np.testing.assert_allclose(functions[0], np.sqrt(0.5), atol=1e-6)
    assert np.all(products[0] > 0)  # signs are fixed by the first B-spline


def test_a_fourier_basis_stays_what_it_is() -> None:
    """It is orthonormal and ordered already; no sine is mixed with its cosine."""
    plain = projection("fourier", 7, np.linspace(0, 8, 256))
    np.testing.assert_allclose(orthonormal(plain).matrix, plain.matrix, atol=1e-10)


@pytest.mark.parametrize("name", ["bspline", "fourier"])
def test_orthonormal_twice_is_orthonormal_once(name: str) -> None:
    """Asking again changes nothing."""
    once = orthonormal(projection(name, 5, np.linspace(0, 3, 50)))
    np.testing.assert_allclose(orthonormal(once).matrix, once.matrix, atol=1e-10)


def test_vectors_pass_through_the_identity() -> None:
    """Features without a basis are their own coefficients, but are still checked."""
    vectors = _curves(4, 3)
    np.testing.assert_array_equal(identity(3).apply(vectors), vectors)
    with pytest.raises(UserError, match=r"shape \(4, 2\)"):
        identity(3).apply(vectors[:, :2])
    with pytest.raises(UserError, match="needs a basis"):
        orthonormal(identity(3))


LINE = np.linspace(0, 1, 30)


def _changed(index: int, value: float) -> Array:
    grid = LINE.copy()
    grid[index] = value
    return grid


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: projection("fourier", 6, LINE), "odd: 5 or 7, not 6"),
        (lambda: projection("bspline", 3, LINE), "order 4 need a size of at least 4"),
        (lambda: projection("bspline", 9, LINE, order=7), "order is 7"),
        (lambda: projection("bspline", 31, LINE), "only 30 grid points"),
        (lambda: projection("fourier", 5, LINE[:5]), "at most 4 functions"),
        (lambda: projection("forier", 5, LINE), "Did you mean 'fourier'"),
        (lambda: projection("bspline", 0, LINE), "size is 0"),
        (lambda: projection("bspline", 5, LINE, order=0), "order is 0"),
        (lambda: projection("bspline", 5, _changed(4, np.nan)), "grid holds 1"),
        (lambda: projection("bspline", 5, _changed(4, 0.0)), "point 3 is 0.103"),
        (lambda: projection("bspline", 5, _changed(9, 0.32)), "equidistant.*point 8 "),
        (lambda: projection("bspline", 5, LINE[:1]), "at least 2 points"),
        (lambda: projection("bspline", 5, LINE[None]), r"shape \(1, 30\)"),
    ],
)
def test_a_wrong_basis_or_grid_says_what_is_wrong(wrong, message):
    """Each mistake has its own message, before anything is computed."""
    with pytest.raises(UserError, match=message):
        wrong()


def test_a_grid_with_rounded_points_is_equidistant() -> None:
    """Rounded points and a large offset, such as an epoch in seconds, are fine."""
    projection("bspline", 5, np.linspace(0, 1, 100).round(5))
    projection("fourier", 5, 1.7e9 + np.linspace(0, 1, 50))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({(3, 17): np.nan, (3, 20): np.nan}, "curve 3 has 2 missing values.*point 17"),
        ({(0, 2): np.inf}, "curve 0 has 1 infinite value, .*point 2;"),
        ({(1, 0): np.nan, (4, 1): -np.inf}, "curve 1 has 1 missing.*1 more such"),
    ],
)
def test_a_curve_with_a_hole_is_named(bad, message):
    """The message names the curve, how many values are bad and where they begin."""
    curves = _curves(5, 30)
    for place, value in bad.items():
        curves[place] = value
    with pytest.raises(UserError, match=message):
        projection("bspline", 5, LINE).apply(curves)


@pytest.mark.parametrize("shape", [(5, 29), (30,), (2, 3, 30)])
def test_curves_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    """A curve has exactly one value for each grid point."""
    with pytest.raises(UserError, match="one row a curve"):
        projection("bspline", 5, LINE).apply(np.zeros(shape))


FINITE = st.floats(allow_nan=False, allow_infinity=False)
RECORDS = arrays(np.float64, st.tuples(st.integers(0, 4), st.just(3)), elements=FINITE)
VECTOR = arrays(np.float64, 3, elements=FINITE)
WIDTHS = arrays(
    np.float64, 3, elements=st.floats(0, 1e300, exclude_min=True, allow_subnormal=True)
)


@settings(max_examples=150, deadline=None)
@given(c=RECORDS, centre=VECTOR, width=WIDTHS)
def test_rescaled_values_lie_in_the_domain(c, centre, width):
    """Whatever the record, z is in [-1, 1]: the mechanism's proof rests on it."""
    low = centre / 1e10
    high = np.maximum(low + width, np.nextafter(low, np.inf))
    for name, constants in (
        ("tanh", {"centre": centre, "scale": width}),
        ("max_abs", {}),
        ("min_max", {"lower": low, "upper": high}),
    ):
        z, clipped = rescale(name, c, constants)
        assert z.shape == c.shape
        assert np.all(np.abs(z) <= 1)
        assert clipped.shape == c.shape[:1]
        assert name == "min_max" or not clipped.any()


def test_rescaling_follows_its_formula() -> None:
    """Hand-computed values; a zero record stays zero; clipped values are counted."""
    c = np.array([[1.0, -2.0], [0.0, 0.0]])
    z, _ = rescale("tanh", c, {"centre": np.array([1.0, 0.0]), "scale": 2.0})
    np.testing.assert_allclose(z, np.tanh([[0.0, -1.0], [-0.5, 0.0]]))
    z, _ = rescale("max_abs", c, {})
    np.testing.assert_array_equal(z, [[0.5, -1.0], [0.0, 0.0]])
    z, clipped = rescale("min_max", c, {"lower": [0.0, -1.0], "upper": [4.0, 1.0]})
    np.testing.assert_array_equal(z, [[-0.5, -1.0], [-1.0, 0.0]])
    assert clipped.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("name", "constants", "message"),
    [
        ("tanh", {"centre": 0.0, "scale": [1.0, 0.0]}, "0 for coordinate 1"),
        ("tanh", {"centre": 0.0, "scale": -1.0}, "-1 for coordinate 0"),
        ("tanh", {"centre": 0.0, "scale": np.nan}, "scale is nan"),
        ("tanh", {"centre": 0.0}, "takes centre, scale; given: centre"),
        ("tanh", {"centre": [0.0] * 3, "scale": 1.0}, r"centre has shape \(3,\)"),
        ("max_abs", {"scale": 1.0}, "takes no constants"),
        ("min_max", {"lower": 1.0, "upper": 1.0}, "lower must be below upper"),
        ("min_max", {"lower": [0, 2], "upper": [1, 1]}, "for coordinate 1"),
        ("min_max", {"lower": -1.7e308, "upper": 1.7e308}, "distance finite"),
        ("tahn", {}, "Did you mean 'tanh'"),
    ],
)
def test_wrong_constants_are_refused(name, constants, message):
    """Each mistake names the constant and the coordinate."""
    with pytest.raises(UserError, match=message):
        rescale(name, np.ones((2, 2)), constants)


def test_a_record_with_a_hole_is_refused() -> None:
    """NaN is an error, never a 0; so is a vector instead of records."""
    with pytest.raises(UserError, match="coefficients holds 1"):
        rescale("max_abs", np.array([[np.nan, 1.0]]), {})
    with pytest.raises(UserError, match=r"must be \(n, d\)"):
        rescale("max_abs", np.ones(3), {})


def test_volunteers_give_mean_and_standard_deviation() -> None:
    """The divisor is n - 1."""
    centre, scale = volunteer_constants(np.array([[1.0, 0.0], [3.0, 4.0]]))
    np.testing.assert_allclose(centre, [2.0, 2.0])
    np.testing.assert_allclose(scale, [np.sqrt(2), np.sqrt(8)])


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([[1.0, 2.0]], "1 volunteers"),
        ([[0.1, 1.0]] * 2 + [[0.1, 2.0]], "coordinate 0 is the same for all 3"),
    ],
)
def test_volunteers_without_spread_are_refused(records, message):
    """A scale of 0 would divide by it; 0.1 three times has no rounding-error scale."""
    with pytest.raises(UserError, match=message):
        volunteer_constants(np.array(records))
