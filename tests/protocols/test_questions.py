"""Questions about several classes: their codes, and what answers make."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curvote.base.errors import UserError
from curvote.learning.votes import average_classifiers
from curvote.messages.message import ClientData
from curvote.systems.common.checks import class_count
from curvote.systems.common.models import combine_lines, combined_predictions
from curvote.systems.common.questions import (
    answer_questions,
    complete_labels,
    halving_code,
    interleave_questions,
    one_against_rest_code,
    split_questions,
)

CODES = (one_against_rest_code, halving_code)
Code = Callable[[int], np.ndarray]
CLASSES = [2, 3, 4, 5, 8, 10, 26, 128]


@pytest.mark.parametrize("code", CODES)
def test_two_classes_leave_one_question(code: Code) -> None:
    """It is "is it class 1?", so that two classes are asked as they always were."""
    assert code(2).tolist() == [[-1.0, 1.0]]


@pytest.mark.parametrize("n_classes", CLASSES[1:])
def test_one_against_the_rest_singles_out_each_class(n_classes: int) -> None:
    """Question k is answered yes by class k alone."""
    code = one_against_rest_code(n_classes)
    assert ((code == 1) == np.eye(n_classes, dtype=bool)).all()
    assert set(np.unique(code)) == {-1, 1}


@pytest.mark.parametrize("n_classes", CLASSES)
def test_splits_are_corners_of_a_regular_simplex(n_classes: int) -> None:
    """Any two classes agree as often as any others, and each question parts some."""
    code = halving_code(n_classes)
    products = code.T @ code
    assert set(np.unique(code)) == {-1, 1}
    assert (products[~np.eye(n_classes, dtype=bool)] == -1).all()
    assert (np.ptp(code, axis=1) == 2).all()
    assert n_classes - 1 <= len(code) < 2 * (n_classes - 1) or n_classes == 2


def test_a_power_of_two_is_split_into_equal_halves() -> None:
    """Every answer is then as frequent as the other."""
    assert (halving_code(8).sum(axis=1) == 0).all()


def test_questions_are_taken_in_turn() -> None:
    """Number Q is the first one again; what is no class is refused."""
    code = one_against_rest_code(3)
    told = answer_questions(code, np.array([0, 1, 2, 3, 4]), np.array([0, 0, 2, 0, 2]))
    assert told.tolist() == [1, -1, 1, 1, -1]
    for bad in (-1, 3, 0.5, np.nan):
        with pytest.raises(UserError):
            answer_questions(code, np.array([0]), np.array([bad]))


@given(st.integers(1, 6), st.integers(1, 6))
def test_what_was_taken_apart_stands_in_turn_again(count: int, n: int) -> None:
    """Rows b, b + Q, ... are about one question."""
    rows = {"n": np.arange(count * n)}
    each = split_questions(rows, n)
    assert [set(own["n"] % n) for own in each] == [{q} for q in range(n)]
    assert (interleave_questions([own["n"] for own in each]) == rows["n"]).all()


def test_a_source_tells_how_many_classes_it_has() -> None:
    """Those that list none have two; so `mrma` of two is what it was."""
    assert class_count({"name": "simulated"}) == 2
    assert class_count({"name": "circle", "n_classes": 2}) == 2
    assert class_count({"name": "circle", "n_classes": 5}) == 5


def test_a_broken_record_is_refused() -> None:
    """Of labels and numbers alike, and where one has none of the other."""
    z = np.zeros((2, 3))
    assert complete_labels(ClientData(z, z, np.array([2.0, 0.0])), 3).tolist() == [2, 0]
    for numbers, labels in ((z, [0]), (z, [0, 3]), (z * np.nan, [0, 1])):
        with pytest.raises(UserError):
            complete_labels(ClientData(numbers, numbers, np.array(labels)), 3)


def test_two_classes_are_averaged_as_ever() -> None:
    """The one line has the bits of MRMA's average."""
    rng = np.random.default_rng(1)
    coef, intercept, w = rng.normal(size=(9, 4)), rng.normal(size=9), rng.normal(size=9)
    found = combine_lines(one_against_rest_code(2), (coef, intercept), w)
    right = average_classifiers(coef, intercept, w)
    assert found[0].tobytes() == right[0].tobytes()
    assert found[1].tolist() == [right[1]]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("n_classes", CLASSES)
def test_right_answers_name_the_class(code: Code, n_classes: int) -> None:
    """Lines that tell every answer rightly, each so often, make the right scores."""
    own = code(n_classes)
    records = np.eye(n_classes)  # f(z) = answer of class k at corner k
    lines = np.tile(own, (2, 1)), np.zeros(2 * len(own))
    told = combined_predictions(own, records, lines, np.full(2 * len(own), 0.5))
    assert told.tolist() == list(range(n_classes))
    assert (
        combined_predictions(
            own, records, (-lines[0], lines[1]), np.full(2 * len(own), -0.5)
        )
        == told
    ).all()
