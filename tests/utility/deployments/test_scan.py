"""Deployments: which there are, what each does to every record, and decoding."""

from dataclasses import replace

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.mechanisms import make
from curvote.mechanisms.base import ScalarMechanism
from curvote.mechanisms.factory import mechanism_class
from curvote.systems.utility.method import scan
from curvote.systems.utility.method.deployment import (
    Deployment,
    deployment_channel,
    floor_deployments,
    level_count,
)
from curvote.systems.utility.method.engines.base import Draws
from tests.utility.settings_of import other, people, people_known

SETTING, KNOWN = people(), people_known()
EQUAL = (0.5, 0.5)


def read(deployment, **how):
    """Return what a deployment does to `people`."""
    return scan.measure(SETTING, KNOWN, deployment, **how)


def test_every_scalar_mechanism_is_there_with_its_equal_split():
    """Names come from the classes; equal splits of all totals are listed."""
    names = scan.scanned_mechanisms(2)
    assert {"pm_01", "joint_box", "k_rr", "laplace"} <= set(names)
    assert not {"binary_rr", "privunit", "gaussian", "unary", "hadamard"} & set(names)
    assert "gaussian" in scan.scanned_mechanisms(2, 1e-6)
    listed = scan.list_deployments(SETTING, [1.0, 2.0])
    for name in names:
        if issubclass(mechanism_class(name), ScalarMechanism):
            for epsilon in (1.0, 2.0):
                assert Deployment(name, epsilon, EQUAL) in listed
    assert [each.epsilon for each in listed[:3]] == [0.0, 0.0, 0.0]


def test_reads_follow_from_what_is_public():
    """Decoding needs public records and retraining training data."""
    reads = {each.read for each in scan.list_deployments(SETTING, [1.0])}
    assert reads == {"raw", "decode", "retrain", "without"}
    bare, _ = other(public=None, train=None)
    assert {each.read for each in scan.list_deployments(bare, [1.0])} == {"raw"}
    assert len(floor_deployments(bare)) == 1


def test_splits_of_more_features_follow_what_moves_answers():
    """Equal, each alone, and shares that public records show to matter."""
    three = people((0, 4, 5))
    found = scan.candidate_splits(three)
    assert found[0] == (1 / 3,) * 3
    assert {(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)} <= set(found)
    assert all(abs(sum(split) - 1) < 1e-12 for split in found)
    moves = scan.influence(three, three.public)
    assert moves.shape == (3,)
    assert moves.argmax() == 0  # age decides most of the answers
    assert scan.candidate_splits(people((0,))) == [(1.0,)]


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


def test_a_bound_is_none_where_the_model_does_not_see_the_output():
    """Decoded and retrained answers are no longer those of the box."""
    assert read(Deployment("pm_01", 2.0, EQUAL, "decode")).bound is None
    assert read(Deployment("output", 2.0)).bound is None


def test_other_answers_to_agree_with_void_the_bound_where_they_differ():
    """A box around this model's answer says nothing about another's."""
    wrong = KNOWN.clean.copy()
    wrong[:10] = 1 - wrong[:10]
    setting, known = other(reference=wrong)
    found = scan.measure(setting, known, Deployment("pm_01", 2.0, EQUAL))
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
            scan.measure(bare, KNOWN, deployment)


def test_models_that_must_be_asked_are_drawn():
    """Draws carry intervals at their confidence."""
    from curvote.systems.utility.method.profile import build_profile

    drawn = build_profile(SETTING, evidence="draws")
    how = Draws(400, 0.99, SeededEntropy(1))
    found = scan.measure(SETTING, drawn, Deployment("pm_01", 2.0, EQUAL), how)
    exact = read(Deployment("pm_01", 2.0, EQUAL))
    assert (found.evidence, found.confidence, exact.confidence) == ("draws", 0.99, None)
    inside = (found.lower <= exact.agreement) & (exact.agreement <= found.upper)
    assert inside.mean() > 0.95
    assert np.all(found.queries == 400)


def test_words_tell_deployments_apart_and_stay_short():
    """Of one model and total each has words of its own; many features are counted."""
    listed = [d for d in scan.list_deployments(SETTING, [2.0]) if d.epsilon]
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


AGE = Deployment("pm_01", 3.0, (1.0, 0.0), "decode")
CASES = [
    AGE,
    Deployment("pm_01", 4.0, (0.5, 0.5), "decode"),
    Deployment("joint_box", 3.0, None, "decode"),
    Deployment("k_rr", 3.0, (0.5, 0.5), "decode", params={"n_classes": 6}),
    Deployment("hybrid", 3.0, (0.25, 0.75), "decode"),
    Deployment("laplace", 3.0, (0.0, 1.0), "decode"),
]
every_case = pytest.mark.parametrize(
    "deployment", CASES, ids=lambda each: each.describe(("age", "bmi"))
)


def on_bins(deployment):
    """Return the laws of prior and people on bins."""
    setting = people()
    seen = replace(deployment_channel(setting, deployment), clip=False)
    sent = [place for part in seen.parts for place in part.places]
    return scan.bin_laws(seen.law(setting.prior), seen.law(setting.values), sent)


@every_case
def test_exact_decoding_agrees_with_outputs_that_are_drawn_and_decoded(deployment):
    """Sums over bins are what draws of the same rule come to."""
    setting, known = people(), people_known()
    exact = scan.decode(setting, known, deployment, Draws())
    seen = replace(deployment_channel(setting, deployment), clip=False)
    prior = seen.law(setting.prior)
    found = scan.decode_draws(
        setting, known, seen, prior, Draws(200, 0.95, SeededEntropy(1))
    )
    assert (exact.evidence, found.evidence) == ("exact", "draws")
    np.testing.assert_allclose(exact.share.sum(axis=1), 1, atol=1e-9)
    variance = exact.share[:, 0] * exact.share[:, 1] / 200
    error = np.sqrt(variance.sum()) / setting.n
    gap = found.share.mean(axis=0) - exact.share.mean(axis=0)
    # Two numbers together are cut into fewer bins than each is when outputs are drawn.
    assert np.all(np.abs(gap) <= 4.5 * error + 0.002)


@every_case
def test_no_other_rule_agrees_more_where_the_prior_is_true(deployment):
    """Bayes' rule, against a guess and against the likeliest point's answer."""
    held, (prior, own) = people_known().class_weights(), on_bins(deployment)
    likelihood = prior.block(slice(None))
    np.testing.assert_allclose(likelihood.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_allclose(own.block(slice(None)).sum(axis=1), 1, atol=1e-9)
    scores = np.stack([each @ likelihood for each in held])
    answer = scan._best_class(held, likelihood)
    reached = np.take_along_axis(scores, answer[None], axis=0)[0].sum(axis=1)
    np.testing.assert_allclose(reached, scores.max(axis=0).sum(axis=1), rtol=1e-12)
    # A server that always guessed, or that took the likelier point's answer, has less.
    assert reached.sum() > scores.sum(axis=2).max(axis=0).sum()
    nearest = np.take_along_axis(held[1] > 0, likelihood.argmax(axis=0)[None], axis=1)
    other_rule = np.where(nearest, scores[1], scores[0]).sum(axis=1)
    assert np.all(reached >= other_rule - 1e-12)


def test_many_classes_are_decoded_by_the_same_rule():
    """The most weight wins; ties go to the first."""
    rng = np.random.default_rng(0)
    held = list(rng.random((4, 7, 9)))
    likelihood = rng.random((9, 5))
    best = np.argmax([each @ likelihood for each in held], axis=0)
    assert np.array_equal(scan._best_class(held, likelihood), best)
    assert np.array_equal(
        scan._best_class(held[:2], likelihood),
        np.argmax([each @ likelihood for each in held[:2]], axis=0),
    )


def test_bins_are_fine_enough(monkeypatch):
    """Eight times as many bins gain nothing that matters."""
    found = read(AGE).agreement
    monkeypatch.setattr(scan, "FINENESS", 96)
    monkeypatch.setattr(scan, "MOST", 8192)
    assert np.abs(read(AGE).agreement - found).mean() < 0.01
    assert read(AGE).agreement.mean() == pytest.approx(found.mean(), abs=0.002)


def test_decoding_tends_to_the_floor_and_to_the_clean_answer():
    """With epsilon to 0, and to many."""
    known = people_known()
    nothing = read(Deployment("pm_01", 1e-4, (1.0, 0.0), "decode"))
    assert np.array_equal(nothing.agreement > 0.5, known.usual_class == known.clean)
    # A public prior of 80 points knows no finer: read raw where noise is that narrow.
    everything = read(Deployment("pm_01", 14.0, (0.5, 0.5), "decode"))
    assert everything.agreement.mean() > nothing.agreement.mean() + 0.15


def test_a_prior_of_the_wrong_people_costs_agreement():
    """People of 60 years more."""
    old = people().public.copy()
    old[:, 0] = np.clip(old[:, 0] + 60, 0, 100)
    wrong = scan.measure(
        *other(public=old), Deployment("pm_01", 2.0, (1.0, 0.0), "decode")
    )
    right = read(Deployment("pm_01", 2.0, (1.0, 0.0), "decode"))
    assert wrong.agreement.mean() < right.agreement.mean() - 0.05


def test_what_cannot_be_decoded_is_refused():
    """Without a prior, or without a law."""
    with pytest.raises(UserError, match="public records"):
        scan.measure(*other(public=None), AGE)
    with pytest.raises(UserError, match="read it raw"):
        read(Deployment("privunit", 2.0, None, "decode"))


def test_more_than_two_numbers_are_drawn():
    """With intervals."""
    sensitive = (0, 4, 5)
    how = Draws(50, 0.95, SeededEntropy(2))
    given = people(sensitive), people_known(sensitive)
    found = scan.measure(*given, Deployment("pm_01", 9.0, (1 / 3,) * 3, "decode"), how)
    assert found.evidence == "draws"
    assert np.all((found.lower <= found.agreement) & (found.agreement <= found.upper))
    less = scan.measure(*given, Deployment("pm_01", 0.9, (1 / 3,) * 3, "decode"), how)
    assert found.agreement.mean() > less.agreement.mean() + 0.05


VALUES = np.linspace(-1, 1, 9)


def laws(name, epsilon, **params):
    """Return the laws of nine inputs, one for each term."""
    mechanism = make(name, epsilon=epsilon, **params)
    start, stop = mechanism.domain
    columns = (start + (stop - start) * (VALUES + 1) / 2)[:, None]
    return [term[0] for term in mechanism.law(mechanism.to_inputs(columns)).terms]


@pytest.mark.parametrize("name", ["laplace", "piecewise", "pm_01", "hybrid", "duchi"])
@pytest.mark.parametrize("epsilon", [0.3, 2.0, 9.0])
def test_every_output_has_its_bin(name, epsilon):
    """Masses add up to 1 for every input."""
    found = laws(name, epsilon)
    ends = scan.bin_edges(found)
    assert np.all(np.diff(ends) > 0)
    for law in found:
        np.testing.assert_allclose(scan.bin_masses(law, ends).sum(axis=1), 1, atol=1e-9)


def test_atoms_alone_are_one_bin_each():
    """And no bin is empty."""
    found = laws("k_rr", 2.0, n_classes=5)
    assert scan.count_bins(found) == 1
    ends = scan.bin_edges(found)
    (law,) = found
    assert scan.bin_masses(law, ends).shape == law.masses.shape
    np.testing.assert_allclose(scan.bin_masses(law, ends), law.masses, atol=1e-12)


def test_atoms_beside_a_rest_are_apart_from_it():
    """An atom's bin holds nothing else."""
    found = laws("hybrid", 3.0)
    (ends, law) = scan.bin_edges(found), found[0]
    each = scan.bin_masses(law, ends)
    for point in np.unique(law.points):
        place = int(np.searchsorted(ends, point))
        alone = law.cdf([point]) - law.below([point])
        np.testing.assert_allclose(each[:, place], alone[:, 0], atol=1e-12)


def test_narrow_noise_has_more_bins_and_none_has_more_than_most():
    """Up to 512."""
    numbers = [
        scan.count_bins(laws("pm_01", epsilon)) for epsilon in (1.0, 3.0, 6.0, 20.0)
    ]
    assert numbers == sorted(numbers)
    assert numbers[0] < numbers[-1] == scan.MOST
