"""What is known whatever the noise: kept in arrays, and the weights of a prior."""

import io
from dataclasses import replace

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.systems.utility.method import profile
from curvote.systems.utility.method.deployment import Deployment, make_setting
from curvote.systems.utility.method.engines.discriminants import LinearModel
from curvote.systems.utility.method.scan import measure
from tests.utility.settings_of import people, people_known

SETTING, KNOWN = people(), people_known()
ASKED = [
    Deployment("pm_01", 2.0, (1.0, 0.0)),
    Deployment("joint_box", 2.0, None, "decode"),
    Deployment("withhold", 0.0, (0.0, 0.0), "without"),
]


def kept(arrays):
    """Return arrays that went through a file, nothing pickled."""
    file = io.BytesIO()
    np.savez(file, **arrays)
    file.seek(0)
    return dict(np.load(file, allow_pickle=False))


@pytest.mark.parametrize("deployment", ASKED, ids=lambda each: each.read)
def test_what_was_kept_in_a_file_answers_alike(deployment):
    """The model is not asked again: one that refuses to answer is no matter."""
    again = profile.restore_profile(SETTING, kept(KNOWN.arrays()))
    first, second = (measure(SETTING, each, deployment) for each in (KNOWN, again))
    np.testing.assert_array_equal(first.agreement, second.agreement)
    np.testing.assert_array_equal(first.right, second.right)
    if first.bound is not None:
        np.testing.assert_array_equal(first.bound, second.bound)


def test_what_is_not_known_is_not_kept():
    """Without public records and training data there are no arrays of them."""
    bare = replace(SETTING, public=None, train=None)
    about = profile.build_profile(bare, evidence="draws")
    arrays = about.arrays()
    assert not {"public", "without", "weights"} & set(arrays)
    again = profile.restore_profile(bare, kept(arrays))
    assert again.public is None
    assert again.box is None
    assert np.array_equal(again.clean, KNOWN.clean)


def test_public_answers_are_the_models_with_those_values_in_place():
    """Record i with the sensitive values of public record j."""
    for i, j in ((0, 0), (7, 30), (59, 79)):
        row = SETTING.records[[i]].copy()
        row[0, [0, 5]] = SETTING.public[j, [0, 5]]
        assert KNOWN.public[i, j] == SETTING.answers(row)[0]


def told(tells, seed=3):
    """Return people whose age follows from another feature, or does not."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(0, 100, 460)
    married = (age > 45) if tells else rng.random(460) < 0.5
    rows = np.column_stack([age, married * 1.0, rng.normal(size=460)])
    return make_setting(
        LinearModel(np.array([1.0, 0.0, 0.0]), -50.0),
        rows[:60],
        sensitive=(0,),
        bounds=[(0, 100)],
        public=rows[60:],
    )


def test_each_column_is_worth_what_answers_lose_without_it():
    """Of three, one decides, one is heard where that is near its bound, one never."""
    rng = np.random.default_rng(4)
    rows = rng.uniform(0, 100, size=(400, 3))
    model = LinearModel(np.array([1.0, 0.1, 0.0]), -55.0)
    setting = make_setting(
        model,
        rows,
        sensitive=(0, 1, 2),
        bounds=[(0, 100)] * 3,
        features=("a", "b", "c"),
    )
    clean = model.predict(rows)
    worth = setting.column_agreement()
    alone = np.mean((rows[:, 0] > 50) == (clean == model.classes_[1]))
    assert worth["a"][0] == pytest.approx(alone)
    assert worth["c"] == (worth["c"][0], 1.0)
    assert worth["a"][0] == worth["b"][1] > worth["b"][0]


def test_a_prior_weighs_those_alike_where_that_tells():
    """The floor follows from the other features, and every reading is better."""
    alike = told(tells=True)
    known = profile.build_profile(alike)
    found = profile.prior_weights(alike)
    assert found.shape == (60, 400)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    same = alike.records[:, [1]] == alike.public[:, 1]
    assert found[same].mean() > 2 * found[~same].mean()
    deployment = Deployment("pm_01", 1.0, (1.0,), "decode")
    for each in (Deployment("withhold", 0.0, (0.0,), "decode"), deployment):
        with_it, without = (
            measure(alike, one, each).agreement.mean()
            for one in (known, replace(known, weights=None))
        )
        assert with_it > without + 0.1


def test_all_weigh_alike_where_nothing_tells():
    """Or where there is nothing else, or nobody else."""
    assert profile.prior_weights(told(tells=False)) is None
    given = told(tells=True)
    assert profile.prior_weights(replace(given, public=given.public[:1])) is None
    assert profile.prior_weights(replace(given, public=None)) is None
    constant = given.public.copy()
    constant[:, 1:] = 1.0
    assert profile.prior_weights(replace(given, public=constant)) is None
    assert list(profile.REACHES) == sorted(profile.REACHES, reverse=True)


def test_the_published_claim_stands_beside_where_it_is_asked_for():
    """It is not the bound."""
    two = replace(SETTING, records=SETTING.records[:2], labels=None, groups=None)
    about = profile.build_profile(two, published=SeededEntropy(1))
    deployment = Deployment("pm_01", 4.0, (0.5, 0.5))
    first = measure(two, about, deployment)
    assert first.claimed.shape == (2,)
    assert not np.array_equal(first.claimed, first.bound)
    assert np.all(about.published.queries >= 516_446)
    assert measure(SETTING, KNOWN, deployment).claimed is None
