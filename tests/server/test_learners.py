"""The promises of every learner, over the registry."""

import re
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from curvote.base.errors import UserError
from curvote.learning import learners
from curvote.learning.learners.registry import LARGEST_REPORT, Fits
from tests.problems import (
    Batch,
    assert_same,
    every_learner,
    in_units,
    noisy,
    random_gram,
    scores,
    taking,
)


@st.composite
def nasty_batches(draw: st.DrawFn) -> Batch:
    """Ties, constants, collinear columns, tiny and enormous values, few points."""
    batch, n, d = draw(st.tuples(*[st.integers(1, top) for top in (3, 9, 5)]))
    special = [
        0.0,
        1.0,
        -1.0,
        1e-8,
        1e8,
        1e-200,
        LARGEST_REPORT,
        -LARGEST_REPORT,
        5e-324,
    ]
    values = st.sampled_from(special) | st.floats(-LARGEST_REPORT, LARGEST_REPORT)
    x = draw(hnp.arrays(np.float64, (batch, n, d), elements=values))
    y = draw(hnp.arrays(np.float64, (batch, n), elements=st.sampled_from([-1.0, 1.0])))
    return x, y


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
    options = taking(name, gram=random_gram(3, 4))
    together = learners.fit(name, x, y, **options)
    for b in range(len(x)):
        single = learners.fit(name, x[b : b + 1], y[b : b + 1], **options)
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
    """Moving all reports moves the boundary; rescaling keeps the direction.

    Penalties are per unit of a report, so that they change with it.
    """
    x, y = noisy(4, 5, 20, 3)
    context = learners.fit(name, x, y, **in_units(name, 1))
    moved = x * 2.0**power + shift
    there = learners.fit(name, moved, y, **in_units(name, 2.0**power))
    assume(abs(shift) < 2.0 ** (power + 15))
    score, score2 = scores(context, x), scores(there, moved)
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


@every_learner
def test_the_check_passes_what_can_work(name: str) -> None:
    """A learner without any parameter given is a learner that works."""
    learners.check(name, {})


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("svmm", {}, "Did you mean 'svm'"),
        ("svm", {"c": 1}, "takes no parameter 'c'"),
        ("svm", {"C": -1}, "C is -1"),
        ("svm", {"C": "one"}, "C is 'one'"),
        ("cg", {"steps": 0}, "steps is 0"),
        ("cg:x", {}, "only sklearn take"),
        ("sklearn", {}, "say which"),
    ],
)
def test_the_check_refuses_early(
    name: str, params: dict[str, Any], message: str
) -> None:
    """Unknown names and wrong values are found before there is any report."""
    with pytest.raises(UserError, match=message):
        learners.check(name, params)


def test_families_are_no_learners() -> None:
    """What needs a path after its name is not among the names."""
    assert "sklearn" not in learners.names()
    assert {"logistic", "svm", "svm_squared", "lda", "dwd"} <= set(learners.names())
