"""Deployments: which there are, and what each does to every record."""

from dataclasses import replace

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.mechanisms.base import ScalarMechanism
from curvote.mechanisms.factory import mechanism_class
from curvote.systems.utility.method.deployment import (
    Deployment,
    deployment_channel,
    floor_deployments,
    level_count,
)
from curvote.systems.utility.method.engines.base import Draws
from curvote.systems.utility.method.scan import (
    candidate_splits,
    influence,
    list_deployments,
    measure,
    scanned_mechanisms,
)
from tests.utility.settings_of import other, people, people_known

SETTING, KNOWN = people(), people_known()
EQUAL = (0.5, 0.5)


def read(deployment, **how):
    """Return what a deployment does to `people`."""
    return measure(SETTING, KNOWN, deployment, **how)


def test_every_scalar_mechanism_is_there_with_its_equal_split():
    """Names come from the classes; equal splits of all totals are listed."""
    names = scanned_mechanisms(2)
    assert {"pm_01", "joint_box", "k_rr", "laplace"} <= set(names)
    assert not {"binary_rr", "privunit", "gaussian", "unary", "hadamard"} & set(names)
    assert "gaussian" in scanned_mechanisms(2, 1e-6)
    listed = list_deployments(SETTING, [1.0, 2.0])
    for name in names:
        if issubclass(mechanism_class(name), ScalarMechanism):
            for epsilon in (1.0, 2.0):
                assert Deployment(name, epsilon, EQUAL) in listed
    assert [each.epsilon for each in listed[:3]] == [0.0, 0.0, 0.0]


def test_reads_follow_from_what_is_public():
    """Decoding needs public records and retraining training data."""
    reads = {each.read for each in list_deployments(SETTING, [1.0])}
    assert reads == {"raw", "decode", "retrain", "without"}
    bare, _ = other(public=None, train=None)
    assert {each.read for each in list_deployments(bare, [1.0])} == {"raw"}
    assert len(floor_deployments(bare)) == 1


def test_splits_of_more_features_follow_what_moves_answers():
    """Equal, each alone, and shares that public records show to matter."""
    three = people((0, 4, 5))
    found = candidate_splits(three)
    assert found[0] == (1 / 3,) * 3
    assert {(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)} <= set(found)
    assert all(abs(sum(split) - 1) < 1e-12 for split in found)
    moves = influence(three, three.public)
    assert moves.shape == (3,)
    assert moves.argmax() == 0  # age decides most of the answers
    assert candidate_splits(people((0,))) == [(1.0,)]


def test_withholding_answers_as_with_the_public_median():
    """The floors are the model's own answers, and cost nothing."""
    rows = SETTING.records.copy()
    rows[:, [0, 5]] = np.median(SETTING.public[:, [0, 5]], axis=0)
    raw, decoded, trained = (read(each) for each in floor_deployments(SETTING))
    same = SETTING.answers(rows) == KNOWN.clean
    assert np.array_equal(raw.agreement, same.astype(float))
    assert np.array_equal(
        decoded.agreement, (KNOWN.usual_class == KNOWN.clean).astype(float)
    )
    assert np.array_equal(
        trained.right, (KNOWN.without == SETTING.labels).astype(float)
    )
    bare, known = other(public=None)
    np.testing.assert_allclose(bare.fill_value, [50.0, 36.0])
    assert known.public is None


def test_the_model_without_the_features_has_not_seen_them():
    """Its answers do not move with the sensitive columns."""
    moved = SETTING.records.copy()
    moved[:, [0, 5]] = moved[::-1][:, [0, 5]]
    _, known = other(records=moved)
    assert np.array_equal(known.without, KNOWN.without)
    assert not np.array_equal(known.clean, KNOWN.clean)


def test_randomised_response_on_the_answer_keeps_it_as_often_as_it_says():
    """Agreement e^E / (e^E + K - 1); accuracy is what follows from it."""
    found = read(Deployment("output", 1.5))
    keep = np.exp(1.5) / (np.exp(1.5) + 1)
    np.testing.assert_allclose(found.agreement, keep, atol=1e-12)
    clean = KNOWN.clean == SETTING.labels
    np.testing.assert_allclose(found.right, np.where(clean, keep, 1 - keep), atol=1e-9)


@pytest.mark.parametrize("name", ["pm_01", "joint_box", "k_rr", "hybrid"])
def test_raw_agreement_is_that_of_noised_records(name):
    """The engine's figures and the channel's draws are of one deployment."""
    split = None if name == "joint_box" else (0.75, 0.25)
    deployment = Deployment(name, 3.0, split)
    found, seen = read(deployment), deployment_channel(SETTING, deployment)
    which = np.tile(np.arange(SETTING.n), 300)
    rows = SETTING.records[which]
    rows[:, [0, 5]] = seen.draw(SETTING.values[which], SeededEntropy(4))
    drawn = np.mean(SETTING.answers(rows) == KNOWN.clean[which])
    error = np.sqrt(np.sum(found.agreement * (1 - found.agreement)) / 300) / SETTING.n
    assert abs(drawn - found.agreement.mean()) <= 4.5 * error + 1e-4
    assert np.all(found.bound <= found.agreement + 1e-5)
    assert found.bound.mean() > 0.05


def test_a_bound_is_none_where_the_model_does_not_see_the_output():
    """Decoded and retrained answers are no longer those of the box."""
    assert read(Deployment("pm_01", 2.0, EQUAL, "decode")).bound is None
    assert read(Deployment("output", 2.0)).bound is None


def test_other_answers_to_agree_with_void_the_bound_where_they_differ():
    """A box around this model's answer says nothing about another's."""
    wrong = KNOWN.clean.copy()
    wrong[:10] = 1 - wrong[:10]
    setting, known = other(reference=wrong)
    found = measure(setting, known, Deployment("pm_01", 2.0, EQUAL))
    plain = read(Deployment("pm_01", 2.0, EQUAL))
    np.testing.assert_allclose(found.agreement[:10], 1 - plain.agreement[:10])
    assert np.all(found.bound[:10] == 0)
    assert np.all(found.bound <= found.agreement + 1e-5)


def test_retraining_follows_its_seed_and_the_noise():
    """The same seed gives the same model; little noise nearly the clean one."""
    deployment = Deployment("pm_01", 1.0, EQUAL, "retrain")
    first = read(deployment, seed=1)
    again = read(deployment, seed=1)
    assert np.array_equal(first.agreement, again.agreement)
    assert not np.array_equal(first.agreement, read(deployment).agreement)
    little = read(Deployment("pm_01", 30.0, EQUAL, "retrain"))
    assert little.agreement.mean() > 0.93 > first.agreement.mean()


def test_retraining_beats_reading_raw_under_wide_noise():
    """Under wide noise the clean model's slopes are too steep for what it sees."""
    raw = read(Deployment("pm_01", 1.0, EQUAL))
    refitted = read(Deployment("pm_01", 1.0, EQUAL, "retrain"))
    assert refitted.right.mean() > raw.right.mean() + 0.03


def test_levels_grow_with_epsilon_within_their_bounds():
    """2 to 101 levels, as many as windows of the piecewise mechanism."""
    found = [level_count(epsilon) for epsilon in (0.01, 1.0, 2.0, 4.0, 20.0)]
    assert found == sorted(found)
    assert (found[0], found[-1]) == (2, 101)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        (Deployment("pm_01", 0.0, EQUAL), "epsilon"),
        (Deployment("pm_01", float("nan"), EQUAL), "epsilon"),
        (Deployment("pm_01", 1.0), "split"),
        (Deployment("pm_01", 1.0, (0.5, 0.6)), "add up to 1"),
        (Deployment("pm_01", 1.0, (1.5, -0.5)), "add up to 1"),
        (Deployment("joint_box", 1.0, EQUAL), "leave out the split"),
        (Deployment("pm01", 1.0, EQUAL), "Did you mean"),
        (Deployment("gaussian", 1.0), "delta"),
        (Deployment("pm_01", 1.0, EQUAL, "bayes"), "read"),
        (Deployment("pm_01", 1.0, EQUAL, "without"), "sent none"),
        (Deployment("pm_01", 1.0, EQUAL, params={"size": 3}), "size"),
    ],
)
def test_what_is_no_deployment_is_refused(wrong, match):
    """One message, before anything is asked of the model."""
    with pytest.raises(UserError, match=match):
        read(wrong)


def test_retraining_without_training_data_is_refused():
    """It says what is missing."""
    bare = replace(SETTING, train=None)
    for deployment in (
        Deployment("pm_01", 1.0, EQUAL, "retrain"),
        Deployment("withhold", 0.0, (0.0, 0.0), "without"),
    ):
        with pytest.raises(UserError, match="training data"):
            measure(bare, KNOWN, deployment)


def test_models_that_must_be_asked_are_drawn():
    """Draws carry intervals at their confidence."""
    from curvote.systems.utility.method.profile import build_profile

    drawn = build_profile(SETTING, evidence="draws")
    how = Draws(400, 0.99, SeededEntropy(1))
    found = measure(SETTING, drawn, Deployment("pm_01", 2.0, EQUAL), how)
    exact = read(Deployment("pm_01", 2.0, EQUAL))
    assert (found.evidence, found.confidence, exact.confidence) == ("draws", 0.99, None)
    inside = (found.lower <= exact.agreement) & (exact.agreement <= found.upper)
    assert inside.mean() > 0.95
    assert np.all(found.queries == 400)


def test_words_tell_deployments_apart_and_stay_short():
    """Of one model and total each has words of its own; many features are counted."""
    listed = [d for d in list_deployments(SETTING, [2.0]) if d.epsilon]
    words = [each.describe(SETTING.names) for each in listed]
    assert len(set(words)) == len(words)
    assert "0.75 on age and 0.25 on bmi" in " ".join(words)
    names = tuple(f"pixel {i}" for i in range(49))
    many = Deployment("pm_01", 9.0, (1 / 49,) * 49, "decode").describe(names)
    assert many == "pm_01, an equal share on each of 49, decoded"
    led = Deployment("pm_01", 9.0, (0.5, 0.2, 0.1, 0.1, 0.1, *(0.0,) * 44)).describe(
        names
    )
    assert led.startswith("pm_01, 0.5 on pixel 0 and 0.2 on pixel 1")
    assert led.endswith("less on 1 others")
