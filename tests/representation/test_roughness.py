"""Bases as spaces of functions: roughness, curves by their values, inner products."""

import numpy as np
import pytest

from curvote.curves.basis import (
    grid_projection,
    identity,
    orthonormal,
    projection,
    roughness_matrix,
)
from curvote.curves.encoding import classifier_features


@pytest.mark.parametrize("coordinates", ["coefficients", "orthonormal"])
@pytest.mark.parametrize(("name", "size"), [("bspline", 5), ("fourier", 5)])
def test_roughness_is_that_of_the_curve(name: str, size: int, coordinates: str) -> None:
    """C'Rc is the integral of the squared second derivative, in any coordinates."""
    grid = np.linspace(0.0, 2.0, 2001)
    plain = projection(name, size, grid)
    curve = (np.linalg.pinv(plain.matrix) @ np.arange(1.0, size + 1))[None]
    own = orthonormal(plain) if coordinates == "orthonormal" else plain
    coefficients = own.apply(curve)[0]
    fitted = np.linalg.pinv(plain.matrix) @ plain.apply(curve)[0]
    bend = np.gradient(np.gradient(fitted, grid), grid)
    expected = np.trapezoid(bend[2:-2] ** 2, grid[2:-2])
    found = coefficients @ roughness_matrix(own) @ coefficients
    assert found == pytest.approx(expected, rel=0.02)


def test_values_on_a_grid_are_functions_too() -> None:
    """Inner products and roughness of a parabola by its values: 1/5 and 4."""
    grid = np.linspace(0.0, 1.0, 401)
    own = grid_projection(grid)
    c = own.apply(grid[None] ** 2)[0]
    assert c @ own.gram @ c == pytest.approx(1 / 5, rel=1e-4)
    assert c @ roughness_matrix(own) @ c == pytest.approx(4.0, rel=0.01)


def test_feature_vectors_have_size_instead_of_roughness() -> None:
    """What a penalty on the slope's roughness penalises for them."""
    assert np.array_equal(roughness_matrix(identity(3)), np.eye(3))


def test_inner_products_are_what_method_i_judges() -> None:
    """The raw coefficients times the Gram matrix; z has no part in it."""
    c, z, gram = np.ones((2, 3)), np.zeros((2, 3)), np.diag([1.0, 2.0, 3.0])
    assert classifier_features("inner_products", c, z, gram).tolist() == [
        [1, 2, 3],
        [1, 2, 3],
    ]
    assert classifier_features("coefficients", c, z, gram) is c
    assert classifier_features("rescaled", c, z, gram) is z
