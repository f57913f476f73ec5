"""A mechanism is written as the call that builds it."""

import importlib

import numpy as np
import pytest

from curvote.mechanisms import make, names, per_coordinate
from curvote.mechanisms.factory import mechanism_class
from tests.noise import build

KEPT = [name for name in names() if name != "rr_with_prior"]


@pytest.mark.parametrize("name", KEPT)
def test_what_is_written_builds_an_equal_mechanism(name: str) -> None:
    """Every mechanism of the registry that keeps what it was built from."""
    made = build(name, 1.5)
    again = eval(
        repr(made), vars(importlib.import_module(mechanism_class(name).__module__))
    )
    assert repr(again) == repr(made)
    assert again.worst_log_ratio() == made.worst_log_ratio()
    assert repr(made).startswith(f"{mechanism_class(name).__name__}(epsilon=1.5")


def test_what_was_not_kept_is_left_open() -> None:
    """A prior for each client is long, and is not kept."""
    made = make("rr_with_prior", epsilon=1, n_classes=3, prior=np.full((5, 3), 1 / 3))
    assert repr(made) == "RRWithPrior(epsilon=1.0, n_classes=3, prior=...)"


def test_many_numbers_are_left_out() -> None:
    """More than a reader takes in."""
    cuts = np.linspace(-0.9, 0.9, 20)
    made = make("rr_on_bins", epsilon=1, cuts=cuts, answers=np.linspace(-1, 1, 21))
    assert repr(made) == "RROnBins(epsilon=1.0, cuts=..., answers=...)"


def test_coordinates_are_written_as_they_are_asked_for() -> None:
    """With the parameters of the mechanism of one coordinate."""
    made = per_coordinate("exponential", 4, 2.0, size=11)
    assert repr(made) == "per_coordinate('exponential', d=4, epsilon=2.0, size=11)"
    assert repr(eval(repr(made))) == repr(made)
