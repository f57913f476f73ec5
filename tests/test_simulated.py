"""The simulated curves follow their formula, and their labels the stated law."""

from __future__ import annotations

import json

import numpy as np

from curvote.datasets import simulated


def test_simulated_curves_follow_the_formula() -> None:
    """Curves lie in the span of phi_1..phi_50; coefficients are at most sqrt(3)/j."""
    curves, labels = simulated.generate(np.random.default_rng(1), 40, 2001)
    grid = np.linspace(0, 1, 2001)
    for j in (1, 2, 7, 50):
        phi = np.sqrt(2) * np.cos((j - 1) * np.pi * grid) if j > 1 else np.ones(2001)
        coefficients = np.trapezoid(curves * phi, grid, axis=1)
        limit = np.sqrt(3) / j
        assert 0.7 * limit < np.abs(coefficients).max() < limit * (1 + 1e-3)
    assert curves.shape == (40, 2001)
    assert set(labels.tolist()) == {0, 1}


def test_simulated_labels_have_the_stated_law() -> None:
    """The true logit errs as often as the Bayes error says (5 standard errors)."""
    n = 50_000
    curves, labels = simulated.generate(np.random.default_rng(2), n, 101)
    grid, j = np.linspace(0, 1, 101), np.arange(2, 51)[:, None]
    slopes = 4 * (-1.0) ** (j + 1) / j**2 * np.sqrt(2) * np.cos((j - 1) * np.pi * grid)
    beta = 4 + slopes.sum(axis=0)
    logit = 0.1 + np.trapezoid(curves * beta, grid, axis=1)
    error = np.mean((logit > 0) != labels)
    bayes = simulated.bayes_error()
    assert abs(error - bayes) < 5 * np.sqrt(bayes * (1 - bayes) / n)
    surprise = labels - 1 / (1 + np.exp(-logit))
    assert abs(surprise.mean()) < 5 * surprise.std() / np.sqrt(n)


def test_the_bayes_error_is_the_mean_of_the_smaller_probability() -> None:
    """A large fixed-seed average of min(eta, 1 - eta) agrees within 5 of its errors."""
    xi = np.random.default_rng(3).uniform(-np.sqrt(3), np.sqrt(3), (200_000, 50))
    logit = 0.1 + xi @ (4 / np.arange(1, 51) ** 3.0)
    least = 1 / (1 + np.exp(np.abs(logit)))
    away = abs(simulated.bayes_error() - least.mean())
    assert away < 5 * least.std() / np.sqrt(len(least))
    assert 0.0993 < simulated.bayes_error() < 0.1005


def test_one_seed_gives_one_data_set() -> None:
    """Same generator, same clients; another seed, other clients."""
    chosen = simulated.Parameters(points=7)
    first, again, other = (
        simulated.clients(chosen, 5, np.random.default_rng(seed)) for seed in (4, 4, 5)
    )
    for name, column in first.items():
        np.testing.assert_array_equal(column, again[name])
    assert not np.array_equal(first["curve"], other["curve"])
    assert first["curve"].shape == (5, len(simulated.facts(chosen)["grid"]))
    assert json.dumps(simulated.facts(chosen))
