"""Gaussian classes around corners of a simplex: the law, and its Bayes error."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import chisquare, norm

from curvote.data.simulation import records

SETTINGS: list[dict[str, Any]] = [
    {},
    {"n_classes": 3, "d": 8, "distance": 2.0},
    {"n_classes": 26, "d": 4},
    {"n_classes": 5, "d": 1, "distance": 3.0},
]


def drawn(n: int = 50_000, **said: Any) -> Any:
    """Return parameters and that many clients."""
    parameters = records.CLASSES.Parameters.model_validate(said)
    return parameters, records.CLASSES.clients(parameters, n, np.random.default_rng(1))


@pytest.mark.parametrize("said", SETTINGS)
def test_the_bayes_error_is_what_the_regression_functions_leave(
    said: dict[str, Any],
) -> None:
    """A large mean of 1 - max eta and the errors of argmax eta agree (5 errors)."""
    parameters, table = drawn(**said)
    facts = records.CLASSES.facts(parameters)
    json.dumps(facts)
    chances = records.CLASSES.eta(parameters, table["curve"])
    wrong = chances.argmax(axis=1) != table["label"]
    for found in (1 - chances.max(axis=1), wrong):
        error = 5 * found.std() / np.sqrt(len(found)) + 2e-4
        assert abs(found.mean() - facts["bayes_error"]) < error


def test_two_classes_have_the_error_of_two_gaussians() -> None:
    """They are ``distance`` apart."""
    assert records.bayes_error(2, 8, 3.0) == pytest.approx(norm.cdf(-1.5), abs=1e-4)


@pytest.mark.parametrize("k", [2, 3, 10])
def test_means_are_corners_of_a_simplex_where_there_is_room(k: int) -> None:
    """All as far apart as is stated, around 0; with less room, in the root mean."""
    assert pdist(records.class_means(k, 11, 6.0)) == pytest.approx(6.0)
    few = records.class_means(k, 1, 6.0)
    assert np.sqrt((pdist(few) ** 2).mean()) == pytest.approx(6.0)
    np.testing.assert_allclose(
        records.class_means(k, 11, 6.0).mean(axis=0), 0, atol=1e-12
    )


@pytest.mark.parametrize("said", SETTINGS)
def test_records_follow_the_stated_law(said: dict[str, Any]) -> None:
    """Equal shares; around each mean a spread of 1; within bounds that are public."""
    parameters, table = drawn(**said)
    k, d = parameters.n_classes, parameters.d
    assert chisquare(np.bincount(table["label"], minlength=k)).pvalue > 1e-6
    centred = (
        table["curve"] - records.class_means(k, d, parameters.distance)[table["label"]]
    )
    np.testing.assert_allclose(np.cov(centred.T), np.eye(d), atol=0.04)
    bounds = records.CLASSES.facts(parameters)["features"]
    assert len(bounds) == d
    outside = np.abs(table["curve"]) > bounds[0]["upper"]
    assert outside.mean() < 1e-4
