"""Votes without a record's own code: what refits without it say."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from curvote.systems.labels.learners import smoothing
from curvote.systems.labels.learners.graph import Basis, BasisRegression, Spectral
from curvote.systems.labels.learners.knn import (
    KNN,
    NeighbourMean,
    RidgeVotes,
    nearest_neighbours,
)
from curvote.systems.labels.learners.smoothing import (
    CodeTargets,
    fold_masks,
    folded_votes,
    run_sweeps,
)
from curvote.systems.labels.learners.spectral import SpectralVotes
from tests.labels.learners.worlds import coded

RNG = np.random.default_rng(0)


def graph(X):
    """Return a small graph."""
    return Spectral(m=12, anchors=40, neighbours=4, random_state=0).fit(X)


def test_of_neighbours():
    """A record's vote is the vote for it of all others' model."""
    X, _, codes = coded(80)
    votes = KNN(k=7).fit(X, codes, RNG).without_own().votes
    for i in range(0, 80, 9):
        rest = np.delete(np.arange(80), i)
        one = KNN(k=7).fit(X[rest], codes[rest], RNG)
        assert votes[i] == pytest.approx(one.votes(X[[i]])[0], abs=1e-12)


@pytest.mark.parametrize("alpha", [0.1, 30.0])
def test_of_ridge(alpha):
    """Refits by scikit-learn's ridge regression, with its intercept."""
    X, _, codes = coded(80)
    votes = RidgeVotes(alpha).fit(X, codes, RNG).without_own().votes
    Y = codes.decode()
    for i in range(0, 80, 9):
        rest = np.delete(np.arange(80), i)
        one = Ridge(alpha).fit(X[rest], Y[rest]).predict(X[[i]])[0]
        assert votes[i] == pytest.approx(one, abs=1e-8)


@pytest.mark.parametrize(("m", "steps"), [(5, 0.0), (12, 0.0), (12, 3.0)])
def test_of_least_squares(m, steps):
    """Refits on the same columns with the same penalty."""
    X, _, codes = coded(80)
    spectral = graph(X)
    learner = SpectralVotes(m, steps=steps, spectral=spectral).fit(X, codes, RNG)
    basis = Basis.from_graph(spectral, X)
    Q, Y = basis.first_columns(m), codes.decode()
    penalty = np.diag(basis.values[:m] ** -steps - 1)
    for i in range(0, 80, 9):
        q, t = np.delete(Q, i, axis=0), np.delete(Y, i, axis=0)
        one = Q[i] @ np.linalg.solve(q.T @ q + penalty, q.T @ t)
        assert learner.without_own().votes[i] == pytest.approx(one, abs=1e-8)


def smoothers(X):
    """Return a smoother of each kind."""
    basis = Basis.from_graph(graph(X), X)
    return [
        NeighbourMean(nearest_neighbours(X, 9)),
        BasisRegression(basis, basis.shrinkage(12, 1.0)),
    ]


@pytest.mark.parametrize("kind", [0, 1])
def test_folds_do_not_know_the_codes_they_judge(kind):
    """Other codes in one fold change no vote for that fold's records."""
    X, _, codes = coded(100)
    smoother = smoothers(X)[kind]
    held = fold_masks(len(X), np.random.default_rng(1))
    known = CodeTargets.from_codes(codes)
    before = folded_votes(smoother, known, [2, 1], held)
    fold = held[0]
    decoded, likely = known.decoded.copy(), known.likely.copy()
    decoded[fold] = decoded[fold][::-1]
    likely[fold] = likely[fold][::-1]
    after = folded_votes(smoother, CodeTargets(decoded, likely), [2, 1], held)
    for old, new in zip(before, after, strict=True):
        assert new[fold] == pytest.approx(old[fold], abs=1e-12)
        assert np.abs(new[~fold] - old[~fold]).max() > 1e-3


@pytest.mark.parametrize("kind", [0, 1])
def test_a_sweep_leaks_without_folds(kind):
    """The broken twin: left-out votes after a sweep still know the record's code."""
    X, _, codes = coded(100)
    smoother, known = smoothers(X)[kind], CodeTargets.from_codes(codes)
    naive = run_sweeps(smoother, known, 1, [2]).votes[1]
    likely = known.likely.copy()
    decoded = known.decoded.copy()
    decoded[0], likely[0] = decoded[0][::-1], likely[0][::-1]
    other = run_sweeps(smoother, CodeTargets(decoded, likely), 1, [2]).votes[1]
    assert np.abs(naive[0] - other[0]).max() > 1e-4


def test_a_sweep_by_hand():
    """Posteriors under the left-out votes, averaged again over the neighbours."""
    X, _, codes = coded(60)
    learner = KNN(k=8, sweeps=1).fit(X, codes, RNG)
    near = nearest_neighbours(X, 8)
    votes = codes.decode()[near].mean(axis=1)
    power = smoothing.best_exponent(votes, codes.likelihood())[0]
    proba = smoothing.probabilities(votes, power) * codes.likelihood()
    posterior = proba / proba.sum(axis=1, keepdims=True)
    new = X[:5] + 0.01
    distance = np.linalg.norm(X[None] - new[:, None], axis=2)
    nearest_ = np.argsort(distance, axis=1)[:, :8]
    assert learner.votes(new) == pytest.approx(posterior[nearest_].mean(axis=1))


def test_they_are_not_stored():
    """A stored learner votes as before and has no left-out votes."""
    X, _, codes = coded(80)
    learner = KNN(k=7).fit(X, codes, RNG)
    assert learner.without_own().rows is not None
    again = pickle.loads(pickle.dumps(learner))
    assert again.without_own().votes is None
    assert (again.votes(X) == learner.votes(X)).all()
