"""Bases that volunteers' labelled curves choose, and nobody else's."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from curvote.base.errors import UserError
from curvote.curves import basis
from curvote.messages import evidence
from curvote.messages.evidence import Choice
from tests.representation.test_fpca import GRID

Array = NDArray[np.float64]
Places = NDArray[np.int64]
CHOICE = Choice("auto", 12, "standard", 0.004)


def labelled(n: int, shape: Array, depth: float) -> tuple[Array, Places]:
    """Return curves of smooth noise, and of class 1 with ``shape`` added."""
    rng = np.random.default_rng(4)
    places = np.arange(n) % 2
    waves = np.cos(np.outer(np.arange(12), np.pi * GRID / 2))
    noise = rng.standard_normal((n, 12)) / (1 + np.arange(12)) @ waves
    return noise + depth * np.outer(2 * places - 1, shape), places


def test_another_basis_is_chosen_where_it_errs_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By its volunteers; without proof the first stays, of much noise another one."""
    few, places = labelled(50, np.ones(40), 1.0)
    name, made = CHOICE.choose(few, places, GRID)
    first = basis.orthonormal(basis.projection("fourier", 11, GRID)).apply(few)
    errors = CHOICE.left_out_errors(np.pad(first, ((0, 0), (0, 1))), places)
    own = CHOICE.left_out_errors(made.apply(few), places, name.startswith("fpca"))
    assert own.mean() < errors.mean() / 2
    assert made.matrix.shape == (12, 40)
    assert made.name == "auto"
    assert np.array_equal(made.gram, np.eye(12))
    curves, _ = labelled(50, np.ones(40), 0.0)
    monkeypatch.setattr(evidence, "CAUTION", 1e6)
    for noise, kept in ((CHOICE.noise, "fourier 11"), (0.02, "fpca 12")):
        assert replace(CHOICE, noise=noise).choose(curves, places, GRID)[0] == kept


def test_a_rare_class_that_nothing_tells_is_left_to_the_majority() -> None:
    """No number is used where the larger class errs least, and curves say nothing."""
    curves, _ = labelled(60, np.ones(40), 0.0)
    name, made = CHOICE.choose(curves, (np.arange(60) % 12 == 0).astype(int), GRID)
    assert name == "none"
    assert not made.matrix.any()


def test_left_out_errors_are_those_of_simulated_noise() -> None:
    """More noise errs more, more classes, too; normal margins err as drawn noise."""
    curves, places = labelled(40, np.sin(GRID), 1.0)
    choice = Choice("fpca", 3, "standard", 0.02)
    coefficients = np.column_stack([curves[:, 3], curves[:, 20], curves[:, 30]])
    found = choice.left_out_errors(coefficients, places)
    several = Choice("fpca", 3, "standard", 0.02, n_classes=3)
    three = several.left_out_errors(coefficients, np.arange(40) % 3)
    assert found.shape == three.shape == (40,)
    less = Choice("fpca", 3, "standard", 1e-4).left_out_errors(coefficients, places)
    assert less.mean() < found.mean() < 0.5 < three.mean()
    t = np.random.default_rng(1).normal(1.5, 0.7, 4000)
    draws = np.random.default_rng(2).standard_normal((4000,))
    assert evidence._chances(t).mean() == pytest.approx((draws > t).mean(), abs=0.02)


def test_a_record_is_as_long_whatever_is_left_out() -> None:
    """Z of those who volunteer has mean square 1 over all numbers."""
    curves, places = labelled(50, np.ones(40), 3.0)
    coefficients = CHOICE.choose(curves, places, GRID)[1].apply(curves)
    centre, scale = CHOICE.constants(coefficients, False)
    z = (coefficients - centre) / scale
    assert (z**2).sum() / (len(z) - 1) == pytest.approx(12)


def test_constant_curves_choose_nothing() -> None:
    """With the reason of the first candidate."""
    with pytest.raises(UserError, match="same for all 20 volunteers"):
        CHOICE.choose(np.ones((20, 40)), np.arange(20) % 2, GRID)
