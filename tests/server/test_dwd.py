"""Distance-weighted discrimination: the minimum, and what its penalty asks for."""

from typing import Any

import numpy as np
import pytest
from skfda.misc.operators import LinearDifferentialOperator, gram_matrix
from skfda.representation.basis import BSplineBasis

from curvote.base.errors import UserError
from curvote.curves.basis import projection
from curvote.data.simulation.simulated import generate
from curvote.learning import learners
from tests.problems import Batch, FloatArray, noisy, random_gram, scores

GRID = np.linspace(0, 1, 100)


def bspline(d: int) -> tuple[FloatArray, FloatArray]:
    """Return the Gram and roughness matrices of ``d`` cubic B-splines on [0, 1]."""
    basis = BSplineBasis(domain_range=(0, 1), n_basis=d)
    rough = gram_matrix(LinearDifferentialOperator(2), basis)
    return np.asarray(basis.gram_matrix()), np.asarray(rough)


def grid_values() -> tuple[FloatArray, FloatArray]:
    """Return the same two for curves given by their values on ``GRID``."""
    step = GRID[1]
    weights = np.full(100, step)
    weights[[0, -1]] /= 2
    second = np.diff(np.eye(100), 2, axis=0) / step**2
    return np.diag(weights), step * second.T @ second


def drawn(replicates: int, n: int) -> Batch:
    """Return simulated curves [replicates, n, 100] and labels -1/+1."""
    curves, labels = generate(np.random.default_rng(40), replicates * n)
    return curves.reshape(replicates, n, -1), 2.0 * labels.reshape(replicates, n) - 1


def pulls(u: FloatArray) -> FloatArray:
    """Return -V'(u)."""
    return np.where(u > 0.5, 0.25 / np.maximum(u, 0.5) ** 2, 1)


@pytest.mark.parametrize("penalty", [1e-4, 0.01, 1.0])
@pytest.mark.parametrize("functional", [False, True])
@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_the_gradient_is_zero(functional: bool, penalty: float, scale: float) -> None:
    """The objective is convex and differentiable: a zero gradient is its minimum."""
    x, y = noisy(41, 100, 60, 5)
    x += np.random.default_rng(42).laplace(scale=scale, size=x.shape)
    gram, rough = bspline(5) if functional else (np.eye(5), np.eye(5))
    given = {"gram": gram, "roughness": rough} if functional else {}
    fits = learners.fit("dwd", x, y, penalty=penalty, **given)
    assert not fits.flagged.any()
    pull = y * pulls(y * scores(fits, x)) / 60
    inverse = np.linalg.inv(gram)
    bend = 2 * penalty * fits.coef @ (inverse @ rough @ inverse)
    atol = 1e-7 * (np.abs(x).max() + np.abs(bend).max())
    np.testing.assert_allclose((pull[:, None, :] @ x)[:, 0], bend, atol=atol)
    np.testing.assert_allclose(pull.sum(axis=1), 0, atol=1e-7)


def test_a_heavy_penalty_leaves_a_straight_slope_function() -> None:
    """What costs nothing, the straight lines, stays: on splines and on a grid alike."""
    curves, y = drawn(4, 50)
    gram, rough = grid_values()
    fits = learners.fit("dwd", curves, y, gram=gram, roughness=rough, penalty=100.0)
    slopes = fits.coef / np.diag(gram)
    lines = np.stack([np.polyval(np.polyfit(GRID, s, 1), GRID) for s in slopes])
    assert np.abs(slopes - lines).max() < 0.02 * np.abs(slopes).max()


def test_few_splines_and_raw_curves_agree() -> None:
    """One smooth slope function, whatever the curves are written in."""
    curves, y = drawn(4, 100)
    gram, rough = grid_values()
    raw = learners.fit("dwd", curves, y, gram=gram, roughness=rough)
    onto = projection("bspline", 6, GRID)
    z = onto.apply(curves.reshape(-1, 100)).reshape(4, 100, 6)
    gram, rough = bspline(6)
    few = learners.fit("dwd", z, y, gram=gram, roughness=rough)
    same = np.sign(scores(raw, curves)) == np.sign(scores(few, z))
    assert same.mean() > 0.97


def test_the_printed_errors_are_reproduced() -> None:
    """MRMA, table A.1: 11.02 % on four coefficients, within 0.5 and 5 standard errors.

    Trained on 50 curves without noise, judged on 500 others, 200 replicates.
    """
    curves, y = drawn(200, 550)
    onto = projection("bspline", 4, GRID)
    z = onto.apply(curves.reshape(-1, 100)).reshape(200, 550, 4)
    gram, rough = bspline(4)
    fits = learners.fit("dwd", z[:, :50], y[:, :50], gram=gram, roughness=rough)
    wrong = (scores(fits, z[:, 50:]) > 0) != (y[:, 50:] > 0)
    error = wrong.mean(axis=1)
    margin = 0.005 + 5 * error.std() / np.sqrt(200)
    assert abs(error.mean() - 0.1102) < margin


def test_separation_without_a_price_is_flagged_and_solved() -> None:
    """Straight slopes cost nothing; classes that one separates have no minimum."""
    rng = np.random.default_rng(43)
    y = np.tile(np.where(np.arange(20) % 2, 1.0, -1.0), (5, 1))
    x = rng.normal(size=(5, 20, 4)) + 100 * y[:, :, None]
    gram, rough = bspline(4)
    fits = learners.fit("dwd", x, y, gram=gram, roughness=rough)
    assert fits.flagged.all()
    assert (y * scores(fits, x) > 0).all()


def test_roughness_is_measured_through_the_gram_matrix() -> None:
    """Functions of another height, the same curves: the same slope function."""
    x, y = noisy(44, 20, 40, 4)
    gram, rough = random_gram(45, 4), random_gram(46, 4)
    height = np.diag([1.0, 2.0, 0.5, 4.0])
    context = learners.fit("dwd", x, y, gram=gram, roughness=rough)
    higher = {"gram": height @ gram @ height, "roughness": height @ rough @ height}
    there = learners.fit("dwd", x @ np.linalg.inv(height), y, **higher)
    np.testing.assert_allclose(there.coef, context.coef @ height, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"penalty": 0}, "penalty is 0"),
        ({"roughness": np.eye(3)}, "must be symmetric"),
        ({"roughness": [[1, 1], [0, 1]]}, "must be symmetric"),
        ({"roughness": [[1, 2], [2, 1]]}, "negative eigenvalues"),
        ({"roughness": np.eye(2), "gram": [[1, 2], [2, 1]]}, "not positive definite"),
    ],
)
def test_wrong_parameters_are_refused(params: dict[str, Any], message: str) -> None:
    """A penalty of nothing and matrices that no basis has are user errors."""
    with pytest.raises(UserError, match=message):
        learners.fit("dwd", *noisy(47, 1, 10, 2), **params)
