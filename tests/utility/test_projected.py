"""A setting in coordinates: whose answers count, and how many coordinates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.neural_network import MLPClassifier

from curvote.base.entropy import SeededEntropy
from curvote.systems.utility.method.deployment import Setting, make_setting
from curvote.systems.utility.method.engines.base import (
    Draws,
    choose_engine,
    make_channel,
)
from curvote.systems.utility.method.profile import build_profile
from curvote.systems.utility.method.projections import (
    direction_coordinates,
    principal_coordinates,
    project_setting,
)
from tests.utility import models_of

SIDE = 24


def digits(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Pictures of four smooth shapes, a few more directions, and speckle."""
    rng, fixed = np.random.default_rng(seed), np.random.default_rng(0)
    smooth = np.cumsum(fixed.normal(size=(12, SIDE)), axis=1)
    labels = rng.integers(0, 4, n)
    blend = rng.normal(size=(n, 8)) * 0.6 ** np.arange(8)
    pictures = smooth[labels] + blend @ smooth[4:] + 0.3 * rng.normal(size=(n, SIDE))
    return np.clip(0.5 + pictures / 20, 0, 1), labels


def pictures() -> Setting:
    """A small network on them, 60 records, 400 public ones; the last column is open."""
    (X, y), (records, labels) = digits(800, 1), digits(60, 2)
    model = MLPClassifier((16,), max_iter=800, random_state=0, tol=1e-3).fit(X, y)
    return make_setting(
        model,
        records,
        sensitive=range(SIDE - 1),
        bounds=np.tile([0.0, 1.0], (SIDE - 1, 1)),
        labels=labels,
        public=digits(400, 3)[0],
        train=(X, y),
    )


@pytest.fixture(scope="module")
def given() -> Setting:
    """The setting, once."""
    return pictures()


def test_setting_in_coordinates(given):
    """Its clean answers are the given model's, and the open column stays open."""
    seen = project_setting(given, principal_coordinates(given.public[:, :-1], 5))
    assert seen.records.shape == (60, 6)
    assert seen.names == tuple(f"coordinate {i}" for i in range(1, 6))
    assert np.array_equal(seen.records[:, 5], given.records[:, -1])
    assert np.array_equal(seen.reference, given.answers(given.records))
    assert np.array_equal(build_profile(seen).clean, seen.reference)
    assert np.array_equal(seen.labels, given.labels)
    assert seen.train is None
    rough = project_setting(given, principal_coordinates(given.public[:, :-1], 1))
    assert (rough.answers(rough.records) != rough.reference).any()


def test_all_components_lose_nothing(given):
    """With as many as there are features, the answers are the same."""
    seen = project_setting(given, principal_coordinates(given.public[:, :-1], SIDE - 1))
    assert np.array_equal(seen.answers(seen.records), seen.reference)
    again = project_setting(
        replace(given, reference=1 - seen.reference),
        principal_coordinates(given.public[:, :-1], 3),
    )
    assert np.array_equal(again.reference, 1 - seen.reference)


def agreement(seen: Setting, mechanism: str, epsilon: float) -> float:
    """By draws."""
    channel = make_channel(
        mechanism, epsilon=epsilon, bounds=seen.bounds, fill_value=seen.fill_value
    )
    rows = np.repeat(seen.records, 40, axis=0)
    noised = channel.draw(np.repeat(seen.values, 40, axis=0), SeededEntropy(5))
    rows[:, list(seen.sensitive)] = noised
    return float(np.mean(seen.answers(rows) == np.repeat(seen.reference, 40)))


def test_directions_of_the_model_beat_components(given):
    """What the model looks at, at the same number of coordinates and total."""
    values = given.public[:, :-1]
    (how,) = direction_coordinates(given, (3,))
    for epsilon in (6, 30):
        mine = project_setting(given, how)
        theirs = project_setting(given, principal_coordinates(values, 3))
        gap = agreement(mine, "joint_box", epsilon) - agreement(
            theirs, "joint_box", epsilon
        )
        assert gap > 0.02, gap


@pytest.mark.parametrize(
    ("name", "engine"), [("logistic", "linear"), ("network", "network")]
)
def test_engines_fold_what_rebuilds_the_features(name, engine):
    """In front of a pipeline, too: the agreement is known as it is without it."""
    data, model = models_of.stroke_like(40, 5), getattr(models_of, name)("stroke")
    seen = make_setting(
        model,
        data.X[:10],
        sensitive=data.sensitive,
        bounds=data.bounds,
        public=data.X[10:],
    )
    one = project_setting(seen, direction_coordinates(seen, (1, 2))[0])
    assert [len(how.bounds) for how in direction_coordinates(seen, (1, 2, 9))] == {
        "linear": [1],
        "network": [1, 2],
    }[engine]
    found, _ = choose_engine(one.question)
    assert found.name == engine
    channel = make_channel(
        "pm_01", epsilon=3, bounds=one.bounds, fill_value=one.fill_value
    )
    answers = found.surface(one.question).answers(channel, Draws())
    rows, size = np.repeat(one.records, 4000, axis=0), (10, 4000)
    rows[:, :1] = channel.draw(rows[:, :1], SeededEntropy(3))
    same = (one.answers(rows).reshape(size) == 1).mean(axis=1)
    error = 4.5 * np.sqrt(0.25 / 4000)
    assert (same >= answers.lower[:, 1] - error).all()
    assert (same <= answers.upper[:, 1] + error).all()
    assert (answers.upper - answers.lower).max() < 0.02
