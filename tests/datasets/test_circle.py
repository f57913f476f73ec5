"""Gaussians on a circle: the law of what is drawn, and its known Bayes error."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare, norm

from curvote.data import lookup
from curvote.data.simulation import records

SETTINGS: list[dict[str, Any]] = [
    {},
    {"n_classes": 16, "shares": "rank"},
    {"n_classes": 100, "sigma": 0.05, "shares": "rank"},
    {"n_classes": 3, "sigma": 2.0, "shares": "rank"},
    {"n_classes": 5, "sigma": 0.9},
]


def drawn(n: int = 100_000, seed: int = 1, **said: Any) -> Any:
    """Return parameters and that many clients."""
    parameters = records.CIRCLE.Parameters.model_validate(said)
    return parameters, records.CIRCLE.clients(
        parameters, n, np.random.default_rng(seed)
    )


@pytest.mark.parametrize("said", SETTINGS)
def test_the_bayes_error_is_what_the_regression_functions_leave(
    said: dict[str, Any],
) -> None:
    """A large mean of 1 - max eta and the errors of argmax eta agree (5 errors)."""
    parameters, table = drawn(**said)
    known = records.CIRCLE.facts(parameters)["bayes_error"]
    chances = records.CIRCLE.eta(parameters, table["curve"])
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    left = 1 - chances.max(axis=1)
    wrong = chances.argmax(axis=1) != table["label"]
    for found in (left, wrong):
        assert abs(found.mean() - known) < 5 * found.std() / np.sqrt(len(found))


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
def test_two_classes_have_the_error_of_two_gaussians(sigma: float) -> None:
    """They are 2 apart: the error is Phi(-1 / sigma)."""
    found = records.bayes_accuracy(2, sigma)
    assert found == pytest.approx(norm.cdf(1 / sigma), abs=1e-6)


def test_known_bayes_accuracies_of_the_paper() -> None:
    """At sigma 2/K about 88 %: 88.0 was seen for K = 64 and 88.6 for K = 100."""
    for n_classes in (16, 32, 64, 100):
        assert 0.88 < records.bayes_accuracy(n_classes, 2 / n_classes) < 0.886


@pytest.mark.parametrize("said", SETTINGS)
def test_records_follow_the_stated_law(said: dict[str, Any]) -> None:
    """Shares as stated; around each centre the same spread in both coordinates."""
    parameters, table = drawn(**said)
    k, sigma = parameters.n_classes, parameters.deviation
    share = records.class_shares(k, parameters.shares)
    counts = np.bincount(table["label"], minlength=k)
    assert chisquare(counts, share * counts.sum()).pvalue > 1e-4
    off = (table["curve"] - records.centres(k)[table["label"]]) / sigma
    assert np.abs(off.mean(axis=0)).max() < 5 / np.sqrt(len(off))
    assert np.abs(np.cov(off.T) - np.eye(2)).max() < 0.03
    np.testing.assert_allclose(np.linalg.norm(records.centres(k), axis=1), 1)
    ends = records.CIRCLE.facts(parameters)["features"][0]
    assert np.mean(np.abs(table["curve"]) > ends["upper"]) < 1e-4


def test_one_seed_gives_one_data_set_and_plain_facts() -> None:
    """Same generator, same clients; facts are JSON, classes are places as text."""
    parameters, first = drawn(50, n_classes=4)
    _, again = drawn(50, n_classes=4)
    _, other = drawn(50, seed=2, n_classes=4)
    assert np.array_equal(first["curve"], again["curve"])
    assert not np.array_equal(first["curve"], other["curve"])
    facts = json.loads(json.dumps(records.CIRCLE.facts(parameters)))
    assert (
        facts["classes"]
        == list(records.CIRCLE.classes(parameters))
        == ["0", "1", "2", "3"]
    )


def test_the_regression_functions_are_known_of_this_source_only() -> None:
    """`lookup` hands them out by the source; of others nobody knows them."""
    source = {"name": "circle", "n_classes": 5, "sigma": 0.2}
    known = lookup.eta(source)
    assert known
    x = np.random.default_rng(3).normal(size=(20, 2))
    parameters = records.CIRCLE.Parameters.model_validate(source)
    assert np.array_equal(known(x), records.CIRCLE.eta(parameters, x))
    assert lookup.eta({"name": "zip"}) is None
