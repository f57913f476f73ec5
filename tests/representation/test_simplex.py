"""Codes of classes: corners of a regular simplex."""

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.curves.direction import (
    Directions,
    are_class_codes,
    class_codes,
    simplex_codes,
)

MANY = (2, 3, 5, 10, 26)


@pytest.mark.parametrize("n_classes", MANY)
def test_corners_are_unit_vectors_equally_far_apart(n_classes: int) -> None:
    """Any two have the product -1/(K - 1), and all of them the sum 0."""
    made = simplex_codes(n_classes)
    wanted = np.full((n_classes, n_classes), -1 / (n_classes - 1))
    np.fill_diagonal(wanted, 1)
    assert made @ made.T == pytest.approx(wanted, abs=1e-12)
    assert made.sum(axis=0) == pytest.approx(np.zeros(n_classes - 1), abs=1e-12)


def test_two_classes_are_signs() -> None:
    """To the last bit: what was drawn of them before stays what it was."""
    assert simplex_codes(2).tolist() == [[-1.0], [1.0]]
    assert class_codes([0, 1, 1], 2).tolist() == [[-1.0], [1.0], [1.0]]


@pytest.mark.parametrize("n_classes", MANY)
def test_only_corners_are_codes(n_classes: int) -> None:
    """A longer corner, a sum of two and another number of columns are none."""
    made = class_codes(np.arange(n_classes), n_classes)
    assert are_class_codes(made, n_classes)
    assert not are_class_codes(made * 1.000001, n_classes)
    assert not are_class_codes(made[:, :0], n_classes)
    assert not are_class_codes((made + np.roll(made, 1, axis=0)) / 2, n_classes)


@pytest.mark.parametrize("labels", [[0, 3], [-1, 0], [0.5], [np.nan]])
def test_what_names_no_class_has_no_code(labels: list[float]) -> None:
    """A place that is not there, or is no place at all."""
    with pytest.raises(UserError):
        class_codes(labels, 3)
    with pytest.raises(UserError, match="n_classes"):
        simplex_codes(1)


@pytest.mark.parametrize("share", [1.0, 0.8])
@pytest.mark.parametrize("n_classes", MANY)
def test_every_record_is_a_unit_vector_of_one_size(n_classes, share):
    """The length tells nothing of the class; the mean is the moments of the records."""
    rng = np.random.default_rng(5)
    given = Directions(4, 0.9, share, n_classes=n_classes)
    z, labels = rng.standard_normal((60, 4)), rng.integers(n_classes, size=60)
    own = class_codes(labels, n_classes)
    made = given.vectors(z, own)
    assert made.shape == (60, given.size)
    assert np.linalg.norm(made, axis=1) == pytest.approx(np.ones(60), abs=1e-12)
    label = given.moments(made.mean(axis=0)).label
    assert label == pytest.approx(own.T @ given.units(z) / 60, abs=1e-12)
