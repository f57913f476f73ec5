"""Decoding: exact on public bins, by draws where there are too many."""

from dataclasses import replace

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.mechanisms import make
from curvote.systems.utility.method import scan
from curvote.systems.utility.method.deployment import Deployment, deployment_channel
from curvote.systems.utility.method.engines.base import Draws
from curvote.systems.utility.method.scan import (
    MOST,
    bin_edges,
    bin_laws,
    bin_masses,
    count_bins,
    decode_draws,
    measure,
)
from tests.utility.settings_of import other, people, people_known

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


def read(deployment):
    """Return what a deployment does to people."""
    return measure(people(), people_known(), deployment)


def on_bins(deployment):
    """Return the laws of prior and people on bins."""
    setting = people()
    seen = replace(deployment_channel(setting, deployment), clip=False)
    sent = [place for part in seen.parts for place in part.places]
    return bin_laws(seen.law(setting.prior), seen.law(setting.values), sent)


@every_case
def test_exact_decoding_agrees_with_outputs_that_are_drawn_and_decoded(deployment):
    """Sums over bins are what draws of the same rule come to."""
    setting, known = people(), people_known()
    exact = scan.decode(setting, known, deployment, Draws())
    seen = replace(deployment_channel(setting, deployment), clip=False)
    prior = seen.law(setting.prior)
    found = decode_draws(
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
    wrong = measure(*other(public=old), Deployment("pm_01", 2.0, (1.0, 0.0), "decode"))
    right = read(Deployment("pm_01", 2.0, (1.0, 0.0), "decode"))
    assert wrong.agreement.mean() < right.agreement.mean() - 0.05


def test_what_cannot_be_decoded_is_refused():
    """Without a prior, or without a law."""
    with pytest.raises(UserError, match="public records"):
        measure(*other(public=None), AGE)
    with pytest.raises(UserError, match="read it raw"):
        read(Deployment("privunit", 2.0, None, "decode"))


def test_more_than_two_numbers_are_drawn():
    """With intervals."""
    sensitive = (0, 4, 5)
    how = Draws(50, 0.95, SeededEntropy(2))
    given = people(sensitive), people_known(sensitive)
    found = measure(*given, Deployment("pm_01", 9.0, (1 / 3,) * 3, "decode"), how)
    assert found.evidence == "draws"
    assert np.all((found.lower <= found.agreement) & (found.agreement <= found.upper))
    less = measure(*given, Deployment("pm_01", 0.9, (1 / 3,) * 3, "decode"), how)
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
    ends = bin_edges(found)
    assert np.all(np.diff(ends) > 0)
    for law in found:
        np.testing.assert_allclose(bin_masses(law, ends).sum(axis=1), 1, atol=1e-9)


def test_atoms_alone_are_one_bin_each():
    """And no bin is empty."""
    found = laws("k_rr", 2.0, n_classes=5)
    assert count_bins(found) == 1
    ends = bin_edges(found)
    (law,) = found
    assert bin_masses(law, ends).shape == law.masses.shape
    np.testing.assert_allclose(bin_masses(law, ends), law.masses, atol=1e-12)


def test_atoms_beside_a_rest_are_apart_from_it():
    """An atom's bin holds nothing else."""
    found = laws("hybrid", 3.0)
    (ends, law) = bin_edges(found), found[0]
    each = bin_masses(law, ends)
    for point in np.unique(law.points):
        place = int(np.searchsorted(ends, point))
        alone = law.cdf([point]) - law.below([point])
        np.testing.assert_allclose(each[:, place], alone[:, 0], atol=1e-12)


def test_narrow_noise_has_more_bins_and_none_has_more_than_most():
    """Up to 512."""
    numbers = [count_bins(laws("pm_01", epsilon)) for epsilon in (1.0, 3.0, 6.0, 20.0)]
    assert numbers == sorted(numbers)
    assert numbers[0] < numbers[-1] == MOST
