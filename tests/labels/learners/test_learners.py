"""What holds for every learner: codes only, any order of rows, stated settings."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from curvote.base.errors import UserError
from curvote.systems.labels.codes.codes import Codes
from curvote.systems.labels.learners.auto import Auto
from curvote.systems.labels.learners.factory import make
from curvote.systems.labels.learners.graph import Spectral
from curvote.systems.labels.learners.knn import KNN, RidgeVotes
from curvote.systems.labels.learners.registry import LEARNERS
from curvote.systems.labels.learners.smoothing import (
    Trial,
    likeliest_trial,
    simplest_trial,
)
from curvote.systems.labels.learners.spectral import LikelihoodVotes, SpectralVotes
from tests.labels.learners.worlds import circle, coded

# Networks need an extra, and have tests of their own.
NAMES = sorted(LEARNERS.keys() - {"neural"})


def rng():
    """Return the same draws each time."""
    return np.random.default_rng(5)


def moved(learner, y, X, codes):
    """Return how far votes move when the true labels change after encoding."""
    before = clone(learner).fit(X, codes, rng()).votes(X)
    y[:] = y[::-1].copy()
    return np.abs(clone(learner).fit(X, codes, rng()).votes(X) - before).max()


@pytest.mark.parametrize("name", NAMES)
def test_no_label_but_the_codes(name):
    """Altering the true labels after encoding gives the same model to the last bit."""
    X, y, codes = coded(200)
    assert moved(make(name), y, X, codes) == 0


def test_a_learner_that_peeks_is_seen():
    """The broken twin: one that holds the labels themselves."""
    X, y, codes = coded(200)

    class Peeks(KNN):
        def fit(self, X, codes, rng, unlabelled=None):
            return super().fit(X, Codes(y.copy(), codes.classes, 2.0, "k_rr"), rng)

    assert moved(Peeks(k=1), y, X, codes) > 0


@pytest.mark.parametrize("name", NAMES)
def test_it_learns(name):
    """Better than half of four classes, from a linear map for ridge."""
    X, _, codes = coded(800)
    learner = make(name).fit(X, codes, rng())
    new, truth = circle(400, 4, seed=9)
    votes = learner.votes(new)
    assert votes.shape == (400, 4)
    assert (votes.argmax(axis=1) == truth).mean() > 0.9
    assert learner.without_own().votes.shape == (len(learner.without_own().rows), 4)


@pytest.mark.parametrize("name", NAMES)
def test_fixed_states_what_was_tuned(name):
    """The learner with stated settings tunes nothing and votes the same."""
    X, _, codes = coded(300)
    learner = make(name).fit(X, codes, rng())
    again = learner.fixed().fit(X, codes, rng())
    assert again.chosen_ == learner.chosen_
    assert again.tried_ == []
    assert again.votes(X) == pytest.approx(learner.votes(X), abs=1e-4)


def learners_on(spectral):
    """Return learners that draw nothing."""
    return [
        KNN(k=9),
        KNN(k=9, sweeps=1),
        RidgeVotes(1.0),
        SpectralVotes(10, spectral=spectral),
        SpectralVotes(steps=2.0, sweeps=1, spectral=spectral),
        LikelihoodVotes(3.0, 10, spectral=spectral),
    ]


@pytest.mark.parametrize("place", range(6))
def test_the_order_of_records_is_nothing(place):
    """Permuted records with their codes give the same votes."""
    X, _, codes = coded(200)
    spectral = Spectral(m=20, anchors=50, neighbours=4, random_state=0).fit(X)
    order = rng().permutation(200)
    one, other = (learners_on(spectral)[place] for _ in range(2))
    votes = one.fit(X, codes, rng()).votes(X[:50])
    again = other.fit(X[order], codes[order], rng()).votes(X[:50])
    assert again == pytest.approx(votes, abs=1e-4)


def test_auto_says_what_it_tried():
    """Rows of a table, of each kind."""
    X, _, codes = coded(300)
    auto = Auto().fit(X, codes, rng())
    rows = auto.tried_
    assert {row["name"] for row in rows} == {"spectral", "knn", "likelihood"}
    assert set(rows[0]) == {"name", "params", "exponent", "likelihood", "se"}
    assert auto.chosen_ in [row["params"] for row in rows]


@pytest.mark.parametrize("kind", ["knn", "likelihood"])
def test_auto_can_take_each_kind(kind, monkeypatch):
    """What it takes votes as the same learner with these settings stated."""
    X, _, codes = coded(300)
    best = "curvote.systems.labels.learners.auto._best_of_families"

    def of_kind(families):
        found = [one for family in families for one in family]
        return next(one for one in found if one.trial.name == kind)

    monkeypatch.setattr(best, of_kind)
    auto = Auto().fit(X, codes, rng())
    again = auto.fixed().fit(X, codes, rng())
    assert type(again) is type(make(kind))
    assert again.votes(X) == pytest.approx(auto.votes(X), abs=1e-4)


def test_auto_on_a_graph_that_is_given():
    """The graph is taken as it is, also by the learner with stated settings."""
    X, _, codes = coded(300)
    spectral = Spectral(m=40, anchors=60, random_state=0).fit(X)
    auto = Auto(spectral).fit(X, codes, rng())
    assert auto.learner_.spectral_ is spectral
    assert auto.fixed().spectral is spectral


def test_unlabelled_records_join_the_graph():
    """Anchors are centres of all public records."""
    X, _, codes = coded(100)
    far = X + 50
    alone = SpectralVotes(4).fit(X, codes, rng())
    both = SpectralVotes(4).fit(X, codes, rng(), far)
    assert alone.spectral_.anchors_.max() < 10 < both.spectral_.anchors_.max()


def test_the_simpler_of_those_that_cannot_be_told_apart():
    """A lead within one standard error takes nothing from the first."""
    noise = rng().normal(size=1000)
    base = Trial("a", {}, 1, np.zeros(1000))
    close = Trial("b", {}, 1, noise - noise.mean() + 0.5 / np.sqrt(1000))
    clear = Trial("c", {}, 1, noise - noise.mean() + 2 / np.sqrt(1000))
    assert likeliest_trial([base, close]) is close
    assert simplest_trial([base, close]) is base
    assert simplest_trial([base, clear]) is clear


@pytest.mark.parametrize(
    ("make_it", "said"),
    [
        (lambda: KNN(k=60), "k is 60, but X has n_samples = 60"),
        (lambda: KNN(k=0), "k is 0"),
        (lambda: SpectralVotes(anchors=61), "anchors is 61"),
        (lambda: SpectralVotes(3, anchors=10, neighbours=11), "neighbours is 11"),
        (lambda: RidgeVotes(-1.0), "alpha is -1"),
    ],
)
def test_more_than_there_is_is_refused(make_it, said):
    """More neighbours or anchors than records, and settings out of range."""
    X, _, codes = coded(60)
    with pytest.raises(UserError, match=said):
        make_it().fit(X, codes, rng())


@pytest.mark.parametrize(
    ("given", "params", "said"),
    [("knnn", {}, "Did you mean 'knn'"), ("knn", {"kk": 3}, "kk"), (3, {}, "is 3")],
)
def test_what_is_no_learner(given, params, said):
    """Names, parameters and objects that nobody knows."""
    with pytest.raises(UserError, match=said):
        make(given, **params)
