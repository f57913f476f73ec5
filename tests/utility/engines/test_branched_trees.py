from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from curvote.systems.utility.method.engines import branched_trees
from curvote.systems.utility.method.engines.base import Draws
from curvote.systems.utility.method.engines.branched_trees import (
    BranchedTrees,
    tree_bounds,
)
from curvote.systems.utility.method.engines.trees.engine import Trees
from tests.utility import models_of
from tests.utility.trees_of import KINDS, asked, fitted

channel = partial(models_of.channel, epsilon=3.0)

# Age, glucose and bmi of generated people.
THREE = {
    "sensitive": (0, 4, 5),
    "bounds": np.array([[0.0, 100.0], [50.0, 300.0], [12.0, 60.0]]),
}


def three(kind, n=3):
    """Return a question with three sensitive features."""
    return replace(asked(fitted(kind, "stroke"), "stroke", n), **THREE)


def compared(question, through):
    """Return the brackets and the exact shares of the same question."""
    engine = BranchedTrees()
    assert engine.refusal(question) is None
    answers = engine.surface(question).answers(through, Draws(number=0))
    exact = Trees().surface(question).answers(through, Draws()).share
    return answers, exact


def inside(answers, exact):
    """Say whether all brackets hold the exact shares."""
    return bool((answers.lower <= exact).all() and (exact <= answers.upper).all())


@pytest.mark.parametrize("data", ["stroke", "digits"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_brackets_of_every_ensemble_hold_the_exact_shares(kind, data):
    """Two classes and four, forests, boosting, votes: atoms at values."""
    question = asked(fitted(kind, data), data, n=2)
    answers, exact = compared(question, channel(question, "k_rr"))
    assert inside(answers, exact)
    assert np.allclose(answers.share, exact, atol=0.02)


@pytest.mark.parametrize(
    ("mechanism", "settings"),
    [
        ("pm_01", {}),
        ("laplace", {}),
        ("laplace", {"clip": False}),
        ("joint_box", {}),
        ("exponential", {}),
        ("pm_01", {"split": [0.5, 0.0, 0.5]}),
    ],
)
def test_three_features_are_bracketed_narrowly(mechanism, settings):
    """Boosting of shallow trees, against the exact sums over all cells."""
    question = three("boosting")
    answers, exact = compared(question, channel(question, mechanism, **settings))
    assert inside(answers, exact)
    assert (answers.upper - answers.lower).max() <= 0.02
    assert answers.evidence == "bracket"


def test_bounds_of_the_wrong_leaves_are_found_out(monkeypatch):
    """A broken twin: the mean of the leaves that are met, instead of the least."""
    question = three("boosting")
    through = channel(question, "pm_01")
    least = branched_trees._least_values

    def mean(of, met, value):
        return (least(of, met, value) - least(of, met, -value)) / 2

    monkeypatch.setattr(branched_trees, "_least_values", mean)
    assert not inside(*compared(question, through))


def test_a_box_holds_only_where_the_cells_do_and_nearly_wherever_they_do():
    """Boxes of many sizes around records."""
    question = three("shallow forest", n=60)
    rng, width = np.random.default_rng(8), np.diff(question.bounds).T
    reach = rng.uniform(0, 0.3, (60, 1)) * width
    low, high = question.values - reach, question.values + reach
    ours, exact = (
        engine.surface(question).holds(low, high)
        for engine in (BranchedTrees(), Trees())
    )
    assert not (ours & ~exact).any()
    assert ours.sum() >= 0.9 * exact.sum() > 10


def test_near_ties_stay_open_where_sums_are_rounded():
    """A lead within the slack of floats decides nothing; whole votes do."""
    question = asked(fitted("boosting", "stroke"), "stroke")
    oracle = tree_bounds(question, *branched_trees.engine.read_trees(question))
    assert (oracle.need > 1).all()
    votes = asked(fitted("tree", "stroke"), "stroke")
    assert tree_bounds(votes, *branched_trees.engine.read_trees(votes)).need.max() == 1


def test_deep_forests_and_other_models_are_refused_with_a_reason():
    """Bounds over too many leaves, or none at all."""
    given = models_of.stroke_like()
    deep = RandomForestClassifier(150, random_state=1).fit(given.X, given.y)
    question = replace(asked(deep, "stroke"), **THREE)
    assert "leaves" in BranchedTrees().refusal(question)
    shallow = fitted("boosting", "stroke")
    many = replace(question, model=shallow, records=np.tile(given.X, (50, 1)))
    assert "20000 records" in BranchedTrees().refusal(many)
    other = replace(question, model=models_of.logistic())
    assert "LogisticRegression" in BranchedTrees().refusal(other)
