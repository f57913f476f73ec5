from __future__ import annotations

import re
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from curvote.errors import UserError
from curvote.server import learners, weak
from curvote.server.learners import logistic
from curvote.server.learners.fits import LARGEST, Fits

FloatArray = NDArray[np.float64]
Batch = tuple[FloatArray, FloatArray]

every_learner = pytest.mark.parametrize("name", learners.names())


def noisy(seed: int, batch: int, n: int, d: int) -> Batch:
    """Return reports and labels of a logistic model with Laplace noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(batch, n, d))
    chance = 1 / (1 + np.exp(-x @ np.linspace(2, -1, d)))
    labels = np.where(rng.random((batch, n)) < chance, 1.0, -1.0)
    return x + rng.laplace(scale=0.5, size=x.shape), labels


@st.composite
def nasty_batches(draw: st.DrawFn) -> Batch:
    """Ties, constants, collinear columns, tiny and enormous values, few points."""
    batch, n, d = draw(st.tuples(*[st.integers(1, top) for top in (3, 9, 5)]))
    special = [0.0, 1.0, -1.0, 1e-8, 1e8, 1e-200, LARGEST, -LARGEST, 5e-324]
    values = st.sampled_from(special) | st.floats(-LARGEST, LARGEST)
    x = draw(hnp.arrays(np.float64, (batch, n, d), elements=values))
    y = draw(hnp.arrays(np.float64, (batch, n), elements=st.sampled_from([-1.0, 1.0])))
    return x, y


def assert_same(found: Fits, expected: Fits, rtol: float = 1e-9) -> None:
    """Fail unless both hold the same flags and, up to rounding, coefficients."""
    np.testing.assert_array_equal(found.flagged, expected.flagged)
    np.testing.assert_allclose(found.coef, expected.coef, rtol, 1e-12)
    np.testing.assert_allclose(found.intercept, expected.intercept, rtol, 1e-12)


# ------------------------------------------------------------------ every learner
@every_learner
@settings(max_examples=150, deadline=None)
@given(data=nasty_batches())
def test_every_input_gives_finite_classifiers(name: str, data: Batch) -> None:
    """Whatever the reports, coefficients are finite and no floating-point warning."""
    x, y = data
    fits = learners.fit(name, x, y)
    assert fits.coef.shape == (len(x), x.shape[2])
    assert fits.intercept.shape == fits.flagged.shape == (len(x),)
    assert np.isfinite(fits.coef).all()
    assert np.isfinite(fits.intercept).all()


@every_learner
@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_one_class_gives_the_constant_classifier(name: str, label: float) -> None:
    """With a single class the classifier says that class, and is flagged."""
    x, y = noisy(1, 3, 20, 4)
    y[1] = label
    fits = learners.fit(name, x, y)
    assert fits.flagged.tolist() == [False, True, False]
    assert not fits.coef[1].any()
    assert fits.intercept[1] == label


@every_learner
def test_a_problem_does_not_depend_on_its_batch(name: str) -> None:
    """Fitted together or one by one, degenerate neighbours included: the same bits.

    Otherwise results would depend on how many replicates are computed at once.
    """
    x, y = noisy(2, 40, 25, 4)
    x[3, :, 1] = x[3, :, 0]
    x[4] = 0
    y[5] = 1
    y[6] = np.where(x[6, :, 0] > 0, 1, -1)
    root = noisy(3, 1, 4, 4)[0][0]
    options = {"gram": root @ root.T + np.eye(4)}
    given = {k: v for k, v in options.items() if k in learners.parameters(name)}
    together = learners.fit(name, x, y, **given)
    for b in range(len(x)):
        single = learners.fit(name, x[b : b + 1], y[b : b + 1], **given)
        assert np.array_equal(single.coef[0], together.coef[b])
        assert single.intercept[0] == together.intercept[b]
        assert single.flagged[0] == together.flagged[b]


@every_learner
def test_opposite_labels_give_the_opposite_classifier(name: str) -> None:
    """Turning every label round negates coef and intercept."""
    x, y = noisy(3, 100, 20, 4)
    fits = learners.fit(name, x, y)
    negated = Fits(-fits.coef, -fits.intercept, fits.flagged, fits.ridge)
    assert_same(learners.fit(name, x, -y), negated)


@every_learner
@given(shift=st.floats(-100, 100), power=st.integers(-20, 20))
@settings(max_examples=30, deadline=None)
def test_scores_do_not_depend_on_origin(name: str, shift: float, power: int) -> None:
    """Moving all reports moves the boundary; rescaling keeps the direction."""
    x, y = noisy(4, 20, 20, 3)
    here = learners.fit(name, x, y)
    there = learners.fit(name, x * 2.0**power + shift, y)
    assume(abs(shift) < 2.0 ** (power + 15))
    score = (x @ here.coef[:, :, None])[:, :, 0] + here.intercept[:, None]
    moved = x * 2.0**power + shift
    score2 = (moved @ there.coef[:, :, None])[:, :, 0] + there.intercept[:, None]
    factor = np.linalg.norm(score, axis=1) / np.linalg.norm(score2, axis=1)
    np.testing.assert_allclose(score2 * factor[:, None], score, rtol=1e-5, atol=1e-5)


@every_learner
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, y: (x[0], y), "reports has shape (10, 2)"),
        (lambda x, y: (x[:, :0], y[:, :0]), "not empty"),
        (lambda x, y: (x, y[:, 1:]), "labels has shape (2, 9)"),
        (lambda x, y: (x, y * 2), "labels holds 2"),
        (lambda x, y: (x, (y > 0).astype(int)), "labels holds 0"),
        (lambda x, y: (x, y * np.nan), "labels holds nan"),
        (lambda x, y: (x / 0.0, y), "NaN or infinite"),
        (lambda x, y: (x * 1e101, y), "must stay within 1e+100"),
    ],
)
def test_wrong_input_is_refused(name: str, change: Any, message: str) -> None:
    """Shapes, labels other than -1/+1 and values beyond bounds are user errors."""
    x, y = np.ones((2, 10, 2)), np.tile([1.0, -1.0], (2, 5))
    with (
        np.errstate(divide="ignore"),
        pytest.raises(UserError, match=re.escape(message)),
    ):
        learners.fit(name, *change(x, y))


def test_unknown_names_are_answered_with_the_closest() -> None:
    """A misspelt learner or parameter is told what was probably meant."""
    x, y = noisy(5, 1, 10, 2)
    with pytest.raises(UserError, match="Did you mean 'logistic'"):
        learners.fit("logistics", x, y)
    with pytest.raises(UserError, match=r"cg takes no parameter 'step'.*'steps'"):
        learners.fit("cg", x, y, step=2)
    with pytest.raises(UserError, match="logistic takes no parameter 'gram'"):
        learners.fit("logistic", x, y, gram=np.eye(2))
    assert learners.parameters("cg") == ["gram", "steps"]


# ------------------------------------------------------------------------ logistic
def test_logistic_is_the_unpenalised_maximum_likelihood_fit() -> None:
    """On 300 problems the coefficients are scikit-learn's without penalty, to 1e-6."""
    x, y = noisy(6, 300, 50, 4)
    fits = learners.fit("logistic", x, y)
    regular = np.flatnonzero(~fits.flagged)
    assert regular.size > 250
    for b in regular:
        model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12)
        model.fit(x[b], y[b])
        np.testing.assert_allclose(fits.coef[b], model.coef_[0], 1e-6, 1e-6)
        np.testing.assert_allclose(fits.intercept[b], model.intercept_[0], 1e-6, 1e-6)


def test_logistic_fits_long_problems() -> None:
    """At the optimum of 25 problems of 3,000 reports the gradient is zero."""
    x, y = noisy(7, 25, 3_000, 4)
    fits = learners.fit("logistic", x, y)
    score = (x @ fits.coef[:, :, None])[:, :, 0] + fits.intercept[:, None]
    residual = y / (1 + np.exp(y * score))
    gradient = (residual[:, None, :] @ x)[:, 0]
    assert not fits.flagged.any()
    np.testing.assert_allclose(gradient, 0, atol=1e-8)
    np.testing.assert_allclose(residual.sum(axis=1), 0, atol=1e-8)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**6), gap=st.sampled_from([1e-6, 1e-2, 1.0, 1e3]))
def test_separable_problems_are_flagged_and_solved(seed: int, gap: float) -> None:
    """Separable reports are flagged, whatever the gap; a wide gap is separated."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=3)
    x = rng.normal(size=(1, 12, 3))
    side = np.where(x @ direction > 0, 1.0, -1.0)
    assume(abs(side.sum()) < 12)
    x += gap * side[:, :, None] * direction
    fits = learners.fit("logistic", x, side)
    assert fits.flagged[0]
    assert fits.ridge == logistic.RIDGE
    if gap >= 1:
        assert (side * (x @ fits.coef[0] + fits.intercept[0]) > 0).all()


@pytest.mark.parametrize(
    ("points", "labels", "flagged"),
    [
        ([0, 1, 2, 3], [-1, -1, 1, 1], True),  # separable
        ([0, 1, 1, 2], [-1, -1, 1, 1], True),  # separable but for a tie
        ([0, 1, 1, 2], [-1, 1, -1, 1], True),  # the same tie, in another order
        ([0, 2, 1, 3], [-1, -1, 1, 1], False),  # overlapping
        ([5, 5, 5, 5], [-1, 1, 1, 1], True),  # no coordinate that varies
    ],
)
def test_exactly_the_problems_without_a_maximum_are_flagged(
    points: list[int], labels: list[int], flagged: bool
) -> None:
    """A finite maximum of the likelihood exists only where the classes overlap."""
    x = np.array(points, dtype=float)[None, :, None]
    assert learners.fit("logistic", x, [labels]).flagged.tolist() == [flagged]


def test_collinear_coordinates_are_flagged_and_share_the_slope() -> None:
    """A repeated coordinate cannot crash the solver: the ridge splits the slope."""
    x, y = noisy(8, 5, 60, 3)
    x[:, :, 2] = x[:, :, 1]
    fits = learners.fit("logistic", x, y)
    single = learners.fit("logistic", x[:, :, :2], y)
    assert fits.flagged.all()
    np.testing.assert_allclose(fits.coef[:, 1], fits.coef[:, 2], rtol=1e-6)
    np.testing.assert_allclose(2 * fits.coef[:, 1], single.coef[:, 1], rtol=1e-2)


def test_full_newton_steps_that_overshoot_are_tamed() -> None:
    """Outliers that make plain Newton diverge still end at the maximum."""
    rng = np.random.default_rng(9)
    x = rng.standard_t(0.5, size=(1_000, 50, 4)).clip(-1e6, 1e6)
    y = np.where(rng.random((1_000, 50)) < 0.5, 1.0, -1.0)
    fits = learners.fit("logistic", x, y)
    score = (x @ fits.coef[:, :, None])[:, :, 0] + fits.intercept[:, None]
    with np.errstate(over="ignore"):
        gradient = ((y / (1 + np.exp(y * score)))[:, None, :] @ x)[:, 0]
    reach = np.abs(x).sum(axis=1)
    assert not fits.flagged.any()
    assert (np.abs(gradient) <= 1e-8 * reach).all()


# --------------------------------------------------------- functional discriminant
def pooled(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the midpoint, the mean difference and S of one problem."""
    up, down = x[y > 0], x[y < 0]
    scatter = np.cov(up.T) * (len(up) - 1) + np.cov(down.T) * (len(down) - 1)
    middle = (up.mean(axis=0) + down.mean(axis=0)) / 2
    return middle, up.mean(axis=0) - down.mean(axis=0), scatter / (len(x) - 2)


def random_gram(seed: int, d: int) -> FloatArray:
    """Return a positive definite matrix, far from the identity."""
    root = np.random.default_rng(seed).normal(size=(2 * d, d))
    return np.asarray(root.T @ root)


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


# ------------------------------------------------------------------ weak learners
@given(st.integers(1, 60), st.integers(1, 20), st.data())
@settings(deadline=None)
def test_each_learner_draws_different_reports(
    n: int, count: int, data: st.DataObject
) -> None:
    """A draw holds size different indices below n, for every learner."""
    size = data.draw(st.integers(1, n))
    found = weak.draw(np.random.default_rng(n), n, count, size)
    assert found.shape == (count, size)
    assert all(np.unique(row).size == size for row in found)
    assert found.min() >= 0
    assert found.max() < n


def test_draws_are_uniform_and_reproducible() -> None:
    """Every report is drawn equally often, at every place; a seed fixes the draw."""
    found = weak.draw(np.random.default_rng(15), 10, 20_000, 4)
    for place in found.T:
        share = np.bincount(place, minlength=10) / 20_000
        assert np.abs(share - 0.1).max() < 6 * np.sqrt(0.1 * 0.9 / 20_000)
    again = weak.draw(np.random.default_rng(15), 10, 20_000, 4)
    np.testing.assert_array_equal(found, again)


@given(st.integers(1, 200), st.data())
@settings(deadline=None)
def test_parts_are_disjoint_and_equal(n: int, data: st.DataObject) -> None:
    """No report stands in two parts, and all parts have floor(n/count)."""
    count = data.draw(st.integers(1, n))
    found = weak.parts(np.random.default_rng(n), n, count)
    together = np.concatenate(found)
    assert [part.size for part in found] == [n // count] * count
    assert np.unique(together).size == together.size
    assert set(together.tolist()) <= set(range(n))


def test_more_than_there_is_cannot_be_drawn() -> None:
    """Asking for more reports than exist is a user error, and so is asking for none."""
    generator = np.random.default_rng(0)
    with pytest.raises(UserError, match="only 10 reports"):
        weak.draw(generator, 10, 3, 11)
    with pytest.raises(UserError, match="size is 0"):
        weak.draw(generator, 10, 3, 0)
    with pytest.raises(UserError, match="only 10 reports"):
        weak.parts(generator, 10, 11)


@every_learner
def test_problems_of_mixed_sizes_keep_their_order(name: str) -> None:
    """Grouping by size is invisible: result i belongs to problem i.

    The Gram matrix reaches the learners that take one, and only these.
    """
    sizes, gram = [20, 30, 20, 10, 30, 20], random_gram(5, 3)
    takes = {"gram": gram} if "gram" in learners.parameters(name) else {}
    whole = [noisy(seed, 1, n, 3) for seed, n in enumerate(sizes)]
    fits = weak.fit_problems(name, [(x[0], y[0]) for x, y in whole], gram=gram)
    singles = [learners.fit(name, x, y, **takes) for x, y in whole]
    expected = Fits(
        np.concatenate([single.coef for single in singles]),
        np.concatenate([single.intercept for single in singles]),
        np.concatenate([single.flagged for single in singles]),
        singles[0].ridge,
    )
    assert_same(fits, expected)


def test_problems_must_share_their_dimension() -> None:
    """No problem at all, or problems of different d, are user errors."""
    with pytest.raises(UserError, match="must share one d"):
        weak.fit_problems("cg", [], gram=np.eye(2))
    x, y = np.ones((4, 2)), np.array([1.0, -1, 1, -1])
    with pytest.raises(UserError, match="must share one d"):
        weak.fit_problems("cg", [(x, y), (x[:, :1], y)], gram=np.eye(2))
