"""Ties fall at random, by record; rare classes are raised."""

from __future__ import annotations

import numpy as np
import pytest

from curvote.systems.labels.method.classifier import break_ties, class_frequencies

X = np.arange(3000.0)[:, None]


def test_ties_fall_evenly_and_by_the_record() -> None:
    """Each of the largest as often; the same record the same class in any company."""
    proba = np.tile([0.4, 0.2, 0.4], (3000, 1))
    places = break_ties(proba, X, 7).argmax(axis=1)
    share = np.bincount(places, minlength=3) / 3000
    assert share == pytest.approx([0.5, 0, 0.5], abs=0.04)
    order = np.random.default_rng(0).permutation(3000)[:100]
    again = break_ties(proba[order], X[order], 7)
    assert np.array_equal(again.argmax(axis=1), places[order])
    assert again.sum(axis=1) == pytest.approx(np.ones(100))
    assert (break_ties(proba, X, 8).argmax(axis=1) != places).any()


def test_a_sum_in_another_order_is_a_tie_too() -> None:
    """Rounding decides nothing."""
    proba = np.tile([0.5 + 1e-12, 0.5 - 1e-12], (3000, 1))
    share = break_ties(proba, X, 0).argmax(axis=1).mean()
    assert share == pytest.approx(0.5, abs=0.04)


def test_what_is_no_tie_stays() -> None:
    """Not a digit moves, and the given array is left alone."""
    proba = np.random.default_rng(0).dirichlet(np.ones(4), size=3000)
    given = proba.copy()
    assert break_ties(proba, X, 0) == pytest.approx(given, abs=1e-15)
    assert np.array_equal(proba, given)


def test_no_class_counts_as_never() -> None:
    """Division needs a share above 0."""
    assert class_frequencies(np.array([[1.0, 0.0], [0.8, 0.2]])) == pytest.approx(
        [0.9, 0.1]
    )
    assert (class_frequencies(np.array([[1.0, 0.0]])) > 0).all()
