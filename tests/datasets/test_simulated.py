"""The simulated curves follow their formula, and their labels the stated law."""

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from curvote.data.simulation import simulated

# What a pipeline says, and between which errors two million draws put it.
SETTINGS: list[tuple[dict[str, Any], float, float]] = [
    ({}, 0.0993, 0.1005),
    ({"slope": [0, 8, -8]}, 0.0982, 0.0989),
    ({"slope": [1.5, 6], "intercept": 1}, 0.1290, 0.1296),
    ({"slope": [0.0] * 50, "intercept": -2}, 0.119, 0.1195),
]


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


def test_one_seed_gives_one_data_set() -> None:
    """Same generator, same clients; another seed, other clients."""
    chosen = simulated.CURVES.Parameters(points=7)
    first, again, other = (
        simulated.CURVES.clients(chosen, 5, np.random.default_rng(seed))
        for seed in (4, 4, 5)
    )
    for name, column in first.items():
        np.testing.assert_array_equal(column, again[name])
    assert not np.array_equal(first["curve"], other["curve"])
    assert first["curve"].shape == (5, len(simulated.CURVES.facts(chosen)["grid"]))
    assert json.dumps(simulated.CURVES.facts(chosen))


def least(logit: np.ndarray | float) -> Any:
    """Return min(eta, 1 - eta)."""
    return expit(-np.abs(logit))


@pytest.mark.parametrize(("said", "low", "high"), SETTINGS)
def test_the_error_of_a_stated_law_is_that_of_its_clients(said, low, high):
    """min(eta, 1 - eta) of 100,000 clients, and the errors of the rule (5 errors)."""
    chosen = simulated.CURVES.Parameters.model_validate(said | {"points": 501})
    bayes = simulated.CURVES.facts(chosen)["bayes_error"]
    beta = simulated.coefficients(chosen.slope)
    xi = np.random.default_rng(7).uniform(-np.sqrt(3), np.sqrt(3), (100_000, 50))
    j = np.arange(1, 51)
    drawn = least(chosen.intercept + xi @ ((-1.0) ** (j + 1) / j * beta))
    assert low < bayes < high
    assert abs(bayes - drawn.mean()) < 5 * drawn.std() / np.sqrt(len(drawn)) + 1e-9
    n = 20_000
    clients = simulated.CURVES.clients(chosen, n, np.random.default_rng(6))
    grid = np.linspace(0, 1, 501)
    phi = np.sqrt(2) * np.cos(np.pi * np.outer(j - 1, grid))
    phi[0] = 1
    logit = chosen.intercept + np.trapezoid(clients["curve"] * (beta @ phi), grid)
    surprise = clients["label"] - expit(logit)
    assert abs(surprise.mean()) < 5 * surprise.std() / np.sqrt(n)
    wrong = ((logit > 0) != clients["label"]).mean()
    assert abs(wrong - bayes) < 5 * np.sqrt(bayes * (1 - bayes) / n)


@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-4, 0.1, 3.0, 40.0, 1e3, 1e6])
@pytest.mark.parametrize("place", [0.0, 0.1, -1.0, 2.0])
def test_one_term_has_an_error_in_closed_form(size: float, place: float) -> None:
    """The logit is uniform on intercept -+ s: the error is a difference of integrals.

    An intercept of -s or beyond puts the edge of the density where it matters most.
    """
    s = math.sqrt(3) * size
    for intercept in (place, place * s, s + place):
        exact = least(intercept)
        if s > 1e-6:
            exact = (_integral(intercept + s) - _integral(intercept - s)) / (2 * s)
        found = simulated.bayes_error((-size,), intercept)
        assert abs(found - exact) < 1e-4


def _integral(u: float) -> float:
    """Return the integral of min(eta, 1 - eta) over logits from 0 to ``u``."""
    return math.copysign(math.log(2) - math.log1p(math.exp(-abs(u))), u)


@pytest.mark.parametrize("intercept", [1e4, -1e308])
def test_a_far_intercept_leaves_one_class_and_no_error(intercept: float) -> None:
    """No overflow, no warning, whatever finite number it is."""
    for slope in ("decaying", [0, 0], [1e6] * 50):
        said = {"slope": slope, "intercept": intercept, "points": 2}
        chosen = simulated.CURVES.Parameters.model_validate(said)
        facts = simulated.CURVES.facts(chosen)
        labels = simulated.CURVES.clients(chosen, 50, np.random.default_rng(8))["label"]
        assert json.dumps(facts, allow_nan=False)
        if slope != [1e6] * 50:
            assert facts["bayes_error"] == 0
            assert set(labels.tolist()) == {int(intercept > 0)}


def test_the_law_changes_labels_and_nothing_else() -> None:
    """Curves are those of the default; spelt out, it gives the default's clients."""
    beta = simulated.BETA.tolist()
    default, spelt, other = (
        simulated.CURVES.clients(
            simulated.CURVES.Parameters.model_validate({"points": 5} | said),
            400,
            np.random.default_rng(9),
        )
        for said in ({}, {"slope": beta, "intercept": 0.1}, {"slope": [0, 8, -8]})
    )
    for name, column in default.items():
        np.testing.assert_array_equal(column, spelt[name])
        assert np.array_equal(column, other[name]) is (name != "label")


def test_facts_state_a_law_of_ones_own() -> None:
    """A report must say that it is not the published setting; the default says none."""
    said = simulated.CURVES.Parameters.model_validate({"slope": [0, 8, -8]})
    (note,) = simulated.CURVES.facts(said)["notes"]
    assert "0, 8, -8; the intercept: 0.1" in note
    spelt = simulated.CURVES.Parameters(slope="decaying", intercept=0.1)
    assert simulated.CURVES.facts(spelt) == simulated.CURVES.facts(
        simulated.CURVES.Parameters()
    )
    assert simulated.CURVES.facts(spelt)["notes"] == []
