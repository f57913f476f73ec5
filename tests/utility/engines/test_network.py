from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from curvote.base.entropy import SeededEntropy
from curvote.systems.utility.method.engines import base, network
from curvote.systems.utility.method.engines import branch as surfaces
from curvote.systems.utility.method.engines.network import (
    RELAXATIONS,
    Network,
    NeuronForm,
)
from tests.utility import models_of
from tests.utility.models_of import channel

FOUR = [[0.0, 100.0], [0.0, 1.0], [50.0, 300.0], [12.0, 60.0]]


def asked(data="stroke", n=5, model=None):
    """Return a question about the first records of generated data."""
    given = models_of.DATA[data]()
    found = models_of.network(data) if model is None else model
    return base.Question(found, given.X[:n], given.sensitive, given.bounds)


def told(question, who, seen):
    """Return the places of the model's answers to records seen as (m, s)."""
    rows = question.records[who].copy()
    rows[:, list(question.sensitive)] = seen
    return np.searchsorted(question.model.classes_, question.model.predict(rows))


def within(answers, truth, room=0.0):
    """Say whether all brackets hold the truth (n, K), give or take."""
    enough = (answers.lower <= truth + room).all()
    return bool(enough and (truth - room <= answers.upper).all())


def enumerated(question, law, n_classes):
    """Return the truth, (n, K), under one product of atoms."""
    (term,) = law.terms
    truth = np.zeros((law.weights.shape[0], n_classes))
    for i in range(len(truth)):
        grid = np.meshgrid(*(each.points[i] for each in term), indexing="ij")
        weights = np.multiply.outer(*(each.masses[i] for each in term)).ravel()
        points = np.stack(grid, axis=-1).reshape(len(weights), -1)
        who = np.full(len(points), i)
        truth[i] = np.bincount(told(question, who, points), weights, n_classes)
    return truth


def drawn(question, through, n_classes, number=20_000):
    """Return the shares of so many draws, (n, K)."""
    n = len(question.records)
    who = np.repeat(np.arange(n), number)
    seen = through.draw(question.values[who], SeededEntropy(5))
    places = told(question, who, seen) + n_classes * who
    return np.bincount(places, minlength=n * n_classes).reshape(n, -1) / number


@pytest.mark.parametrize("data", ["stroke", "digits"])
@pytest.mark.parametrize("mechanism", ["k_rr", "exponential"])
def test_atoms_are_added_up_exactly(mechanism, data):
    """Brackets hold what enumeration gives, with two classes and with four."""
    question = asked(data)
    surface = Network().surface(question)
    through = channel(question, mechanism)
    answers = surface.answers(through, base.Draws())
    truth = enumerated(question, through.law(question.values), surface.n_classes)
    assert within(answers, truth, room=1e-12)
    assert np.allclose(answers.share, truth, atol=0.005)
    assert answers.evidence == "bracket"
    assert not answers.queries.any()


@pytest.mark.parametrize("data", ["stroke", "digits"])
@pytest.mark.parametrize(
    ("mechanism", "settings"),
    [
        ("pm_01", {}),
        ("laplace", {}),
        ("laplace", {"clip": False}),
        ("joint_box", {}),
        ("pm_01", {"split": [1.0, 0.0]}),
    ],
)
def test_draws_fall_into_narrow_brackets(mechanism, settings, data):
    """With edges, without, jointly, with a withheld feature."""
    question = asked(data)
    surface = Network().surface(question)
    through = channel(question, mechanism, **settings)
    answers = surface.answers(through, base.Draws())
    share = drawn(question, through, surface.n_classes)
    assert within(answers, share, room=4.5 * np.sqrt(0.25 / 20_000))
    assert (answers.upper - answers.lower).max() <= 0.01
    assert np.allclose(answers.share.sum(axis=1), 1)


def test_a_tail_that_is_not_clipped_stays_open_not_forgotten():
    """What lies far out is split as well, until it weighs little."""
    question = asked()
    through = channel(question, "laplace", epsilon=0.2, clip=False)
    answers = Network().surface(question).answers(through, base.Draws())
    assert within(answers, drawn(question, through, 2), room=0.016)
    assert (answers.upper - answers.lower).max() <= 0.01


def mistaken(question, number=400):
    """Return how many certain boxes of all sizes have another answer inside."""
    oracle, rng = network.network_bounds(question), np.random.default_rng(3)
    low, high = question.bounds.T
    size = 10.0 ** rng.uniform(-3, 0, (number, 1)) * (high - low)
    start = rng.uniform(low, high - size)
    who = rng.integers(0, len(question.records), number)
    verdict = oracle.judge(who, start, start + size)
    spots = start + rng.random((50, number, len(low))) * size
    answers = [told(question, who, each) for each in spots]
    assert verdict.certain.mean() > 0.3
    return int((verdict.certain & (answers != verdict.answer)).sum())


@pytest.mark.parametrize("activation", sorted(RELAXATIONS))
def test_certain_boxes_have_one_answer_whatever_the_activation(activation):
    """Boxes of every size, two layers, four classes."""
    given = models_of.digits_like()
    kind = MLPClassifier((12, 12), activation=activation, alpha=1.0, random_state=3)
    model = kind.set_params(solver="lbfgs", tol=0.01).fit(given.X, given.y)
    assert mistaken(asked("digits", model=model)) == 0


def signed(form):
    """Return how far values would lie if slopes had no signs: wrong."""
    return np.abs(form.slopes.sum(axis=1)) + form.error


def test_bounds_that_forget_negative_weights_are_found_out(monkeypatch):
    """A broken twin: slopes added with their signs cancel each other."""
    question = asked("digits")
    assert mistaken(question) == 0
    monkeypatch.setattr(NeuronForm, "reach", signed)
    assert mistaken(question) > 0


def tied():
    """Return a network whose two classes tie everywhere but for rounding."""
    given = models_of.stroke_like()
    model = MLPClassifier((3,), max_iter=1, random_state=1)
    with pytest.warns(match="Maximum iterations"):
        model.fit(given.X, given.y)
    first = np.zeros((6, 3))
    first[0] = first[5] = 1.0
    model.coefs_ = [first, np.array([[0.1], [0.2], [-0.3]])]
    model.intercepts_ = [np.zeros(3), np.zeros(1)]
    return asked(model=model)


def test_a_tie_is_left_open_and_without_its_slack_would_be_wrong(monkeypatch):
    """Another order of additions may answer otherwise: rounding is not certainty."""
    question = tied()
    through = channel(question, "k_rr", epsilon=1.0)
    answers = Network().surface(question).answers(through, base.Draws(number=0))
    assert (answers.upper - answers.lower > 0.9).all()
    monkeypatch.setattr(network, "ROUNDING", 0.0)
    monkeypatch.setattr(network, "TIE_MARGIN", 0.0)
    bold = Network().surface(question).answers(through, base.Draws())
    truth = enumerated(question, through.law(question.values), 2)
    assert within(answers, truth)
    assert not within(bold, truth, room=0.01)


def test_records_are_answered_alike_in_batches_of_any_size(monkeypatch):
    """Records that are refined apart from each other get the same brackets."""
    question = asked()
    through = channel(question, "joint_box")
    whole = Network().surface(question).answers(through, base.Draws())
    monkeypatch.setattr(surfaces, "RECORDS_AT_ONCE", 2)
    parted = Network().surface(question).answers(through, base.Draws())
    assert np.allclose(whole.lower, parted.lower, atol=0.005)
    assert within(parted, (whole.lower + whole.upper) / 2, room=0.005)


def test_draws_stand_beside_loose_brackets():
    """Four features: both intervals are used, and the evidence says so."""
    four = {"sensitive": (0, 3, 4, 5), "bounds": np.array(FOUR)}
    question = replace(asked(n=2), **four)
    through = channel(question, "pm_01", epsilon=3.0)
    surface = Network().surface(question)
    alone = surface.answers(through, base.Draws(number=0))
    both = surface.answers(through, base.Draws(number=400, entropy=SeededEntropy(1)))
    assert (alone.evidence, both.evidence) == ("bracket", "draws")
    assert (alone.upper - alone.lower).max() > 0.1
    assert (both.upper - both.lower).max() < 0.11
    assert (both.queries == 400).all()
    truth = drawn(question, through, 2)
    assert within(alone, truth, room=0.016)
    assert within(both, truth, room=0.03)


def test_draws_that_contradict_a_bracket_change_nothing():
    """What is certain stands, whatever the draws say."""
    half, one = np.array([[0.5, 0.5]]), np.array([[1.0, 0.0]])
    none = np.zeros(1, dtype=np.int64)
    known = base.Answers(half, half - 0.1, half + 0.1, "bracket", none)
    unlucky = base.Answers(one, one, one, "draws", none + 9)
    found = surfaces.intersect_answers(known, unlucky)
    assert (known.lower <= found.lower).all()
    assert (found.lower <= found.share).all()
    assert (found.share <= found.upper).all()
    assert (found.upper <= known.upper).all()


def test_what_cannot_be_read_is_refused_with_a_reason():
    """Another estimator, a front that bends, too many features."""
    given = models_of.stroke_like()
    other = LogisticRegression(max_iter=5000).fit(given.X, given.y)
    assert "LogisticRegression" in Network().refusal(asked(model=other))
    bent = make_pipeline(PolynomialFeatures().fit(given.X), *[models_of.network()[-1]])
    assert "PolynomialFeatures" in Network().refusal(asked(model=bent))
    every = base.Question(
        models_of.network(), given.X[:2], tuple(range(6)), np.zeros((6, 2))
    )
    assert "6 sensitive" in Network().refusal(every)
    assert Network().refusal(asked()) is None
