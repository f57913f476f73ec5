"""The functional discriminant: conjugate gradients from the centroid on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from curvote.errors import UserError
from curvote.server import learners
from tests.problems import FloatArray, assert_same, noisy, random_gram


def pooled(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the midpoint, the mean difference and S of one problem."""
    up, down = x[y > 0], x[y < 0]
    scatter = np.cov(up.T) * (len(up) - 1) + np.cov(down.T) * (len(down) - 1)
    middle = (up.mean(axis=0) + down.mean(axis=0)) / 2
    return middle, up.mean(axis=0) - down.mean(axis=0), scatter / (len(x) - 2)


@pytest.mark.parametrize("extra", [0, 1, 30])
def test_all_steps_solve_the_system(extra: int) -> None:
    """From d steps on (S G) psi = mu holds: G psi is the linear discriminant's slope.

    Further steps change nothing, and neither does the Gram matrix.
    """
    x, y = noisy(10, 50, 40, 4)
    fits = learners.fit("cg", x, y, gram=random_gram(1, 4), steps=4 + extra)
    for b in range(len(x)):
        middle, difference, covariance = pooled(x[b], y[b])
        slope = np.linalg.solve(covariance, difference)
        np.testing.assert_allclose(fits.coef[b], slope, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(fits.intercept[b], -slope @ middle, 1e-7, 1e-9)
    assert not fits.flagged.any()


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_early_stopping_is_optimal_in_the_krylov_space(steps: int) -> None:
    """After m steps psi is the best of span{mu, .., (SG)^(m-1) mu} in the S-norm.

    That is what conjugate gradients mean: the error is orthogonal to the space in the
    inner product of the operator, <u, S G v> = u'G S G v.
    """
    x, y = noisy(11, 20, 40, 4)
    gram = random_gram(2, 4)
    fits = learners.fit("cg", x, y, gram=gram, steps=steps)
    for b in range(len(x)):
        _, difference, covariance = pooled(x[b], y[b])
        powers = [np.linalg.matrix_power(covariance @ gram, k) for k in range(steps)]
        space = np.stack([power @ difference for power in powers], axis=1)
        operator = gram @ covariance @ gram
        weight = np.linalg.solve(
            space.T @ operator @ space, space.T @ gram @ difference
        )
        expected = gram @ space @ weight
        np.testing.assert_allclose(fits.coef[b], expected, rtol=1e-6, atol=1e-9)


def test_centroid_points_along_the_mean_difference() -> None:
    """One step: coef is a positive multiple of G mu, the boundary halves the way."""
    x, y = noisy(12, 50, 30, 4)
    gram = random_gram(3, 4)
    fits = learners.fit("centroid", x, y, gram=gram)
    assert_same(fits, learners.fit("cg", x, y, gram=gram, steps=1))
    for b in range(len(x)):
        middle, difference, _ = pooled(x[b], y[b])
        ratio = fits.coef[b] / (gram @ difference)
        assert ratio.min() > 0
        np.testing.assert_allclose(ratio, ratio[0])
        np.testing.assert_allclose(
            fits.coef[b] @ middle + fits.intercept[b], 0, 1, 1e-9
        )


def test_the_scale_of_the_gram_matrix_does_not_matter() -> None:
    """Integrals in seconds or in hours: the same classifier."""
    x, y = noisy(13, 20, 30, 4)
    gram = random_gram(4, 4)
    for steps in (1, 3, 5):
        small = learners.fit("cg", x, y, gram=gram * 1e-40, steps=steps)
        assert_same(small, learners.fit("cg", x, y, gram=gram, steps=steps))


def test_degenerate_classes_are_flagged() -> None:
    """Without spread the mean difference serves; without difference, the majority."""
    spread = np.array([[0.0, 0], [0, 0], [0, 2], [0, 2]])
    same = np.array([[1.0, 2], [3, 4], [1, 2], [3, 4]])
    labels = [[-1, -1, 1, 1]] * 2
    fits = learners.fit("cg", np.stack([spread, same]), labels)
    assert fits.flagged.all()
    assert fits.coef[0, 0] == 0 < fits.coef[0, 1]
    assert fits.coef[0] @ [0, 1] + fits.intercept[0] == 0
    assert fits.coef[1].tolist() == [0, 0]
    assert fits.intercept[1] == -1


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"steps": 0}, "steps is 0"),
        ({"gram": np.eye(3)}, "must be symmetric"),
        ({"gram": [[1, 1], [0, 1]]}, "must be symmetric"),
        ({"gram": [[1, 2], [2, 1]]}, "not positive definite"),
        ({"gram": [[np.nan, 0], [0, 1]]}, "NaN"),
    ],
)
def test_wrong_parameters_are_refused(params: dict[str, Any], message: str) -> None:
    """Steps below one and matrices no basis can have are user errors."""
    with pytest.raises(UserError, match=message):
        learners.fit("cg", *noisy(14, 1, 10, 2), **params)
