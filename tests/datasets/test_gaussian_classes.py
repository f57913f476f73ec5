"""Gaussian classes on a circle and around a simplex: law, Bayes error, facts."""

import json
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import chisquare, norm

from curvote.data import lookup
from curvote.data.simulation import records
from curvote.data.simulation.records import CIRCLE, CLASSES

SETTINGS: list[tuple[Any, dict[str, Any]]] = [
    (CIRCLE, {}),
    (CIRCLE, {"n_classes": 16, "shares": "rank"}),
    (CIRCLE, {"n_classes": 100, "sigma": 0.05, "shares": "rank"}),
    (CIRCLE, {"n_classes": 3, "sigma": 2.0, "shares": "rank"}),
    (CIRCLE, {"n_classes": 5, "sigma": 0.9}),
    (CLASSES, {}),
    (CLASSES, {"n_classes": 3, "d": 8, "distance": 2.0}),
    (CLASSES, {"n_classes": 26, "d": 4}),
    (CLASSES, {"n_classes": 5, "d": 1, "distance": 3.0}),
]
every_setting = pytest.mark.parametrize(("law", "said"), SETTINGS)


def drawn(law: Any, n: int = 50_000, seed: int = 1, **said: Any) -> Any:
    """Return parameters and that many clients."""
    parameters = law.Parameters.model_validate(said)
    return parameters, law.clients(parameters, n, np.random.default_rng(seed))


@every_setting
def test_the_bayes_error_is_what_the_regression_functions_leave(law, said):
    """A large mean of 1 - max eta and the errors of argmax eta agree (5 errors)."""
    parameters, table = drawn(law, **said)
    known = json.loads(json.dumps(law.facts(parameters)))["bayes_error"]
    chances = law.eta(parameters, table["curve"])
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    wrong = chances.argmax(axis=1) != table["label"]
    for found in (1 - chances.max(axis=1), wrong):
        error = 5 * found.std() / np.sqrt(len(found)) + 2e-4 * (law is CLASSES)
        assert abs(found.mean() - known) < error


@every_setting
def test_records_follow_the_stated_law(law: Any, said: dict[str, Any]) -> None:
    """Shares as stated; around each mean the same spread; within public bounds."""
    parameters, table = drawn(law, **said)
    k = parameters.n_classes
    if law is CIRCLE:
        share, scale = records.class_shares(k, parameters.shares), parameters.deviation
        means = records.centres(k)
        np.testing.assert_allclose(np.linalg.norm(means, axis=1), 1)
    else:
        share, scale = np.full(k, 1 / k), 1.0
        means = records.class_means(k, parameters.d, parameters.distance)
    counts = np.bincount(table["label"], minlength=k)
    assert chisquare(counts, share * counts.sum()).pvalue > 1e-6
    off = (table["curve"] - means[table["label"]]) / scale
    assert np.abs(off.mean(axis=0)).max() < 5 / np.sqrt(len(off))
    np.testing.assert_allclose(np.cov(off.T), np.eye(means.shape[1]), atol=0.04)
    bounds = law.facts(parameters)["features"]
    assert len(bounds) == means.shape[1]
    assert np.mean(np.abs(table["curve"]) > bounds[0]["upper"]) < 1e-4


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
def test_two_classes_have_the_error_of_two_gaussians(sigma: float) -> None:
    """On a circle they are 2 apart, around a simplex ``distance``."""
    found = records.bayes_accuracy(2, sigma)
    assert found == pytest.approx(norm.cdf(1 / sigma), abs=1e-6)
    around = records.bayes_error(2, 8, 2 / sigma)
    assert around == pytest.approx(norm.cdf(-1 / sigma), abs=1e-4)


def test_known_bayes_accuracies_of_the_paper() -> None:
    """At sigma 2/K about 88 %: 88.0 was seen for K = 64 and 88.6 for K = 100."""
    for n_classes in (16, 32, 64, 100):
        assert 0.88 < records.bayes_accuracy(n_classes, 2 / n_classes) < 0.886


@pytest.mark.parametrize("k", [2, 3, 10])
def test_means_are_corners_of_a_simplex_where_there_is_room(k: int) -> None:
    """All as far apart as is stated, around 0; with less room, in the root mean."""
    means, few = records.class_means(k, 11, 6.0), records.class_means(k, 1, 6.0)
    assert pdist(means) == pytest.approx(6.0)
    assert np.sqrt((pdist(few) ** 2).mean()) == pytest.approx(6.0)
    np.testing.assert_allclose(means.mean(axis=0), 0, atol=1e-12)


def test_one_seed_gives_one_data_set() -> None:
    """Same generator, same clients; classes are places as text."""
    (parameters, first), (_, again), (_, other) = (
        drawn(CIRCLE, 50, seed, n_classes=4) for seed in (1, 1, 2)
    )
    assert np.array_equal(first["curve"], again["curve"])
    assert not np.array_equal(first["curve"], other["curve"])
    classes = CIRCLE.facts(parameters)["classes"]
    assert classes == [*CIRCLE.classes(parameters)] == [*"0123"]


def test_the_regression_functions_are_known_of_this_source_only() -> None:
    """`lookup` hands them out by the source; of others nobody knows them."""
    source = {"name": "circle", "n_classes": 5, "sigma": 0.2}
    known = lookup.eta(source)
    assert known
    x = np.random.default_rng(3).normal(size=(20, 2))
    parameters = CIRCLE.Parameters.model_validate(source)
    assert np.array_equal(known(x), CIRCLE.eta(parameters, x))
    assert lookup.eta({"name": "zip"}) is None
