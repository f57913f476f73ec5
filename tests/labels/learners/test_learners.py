"""Learners from codes: what holds for every one, and what holds for some."""

import pickle

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize
from scipy.special import softmax
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVR

from curvote.base.errors import UserError
from curvote.systems.labels.codes.codes import Codes
from curvote.systems.labels.codes.encoding import encode
from curvote.systems.labels.learners import knn, smoothing, spectral
from curvote.systems.labels.learners.auto import Auto, mixture_weights
from curvote.systems.labels.learners.factory import make
from curvote.systems.labels.learners.graph import Basis, BasisRegression, Spectral
from curvote.systems.labels.learners.knn import KNN, RidgeVotes
from curvote.systems.labels.learners.registry import LEARNERS
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
    """A row for each family; members are among them, their weights sum to 1."""
    X, _, codes = coded(300)
    auto = Auto().fit(X, codes, rng())
    names = [row["name"] for row in auto.tried_]
    known = ["likelihood", "ridge", "forest", "spectral", "knn", "likelihood"]
    assert names == known
    assert set(auto.tried_[0]) == {"name", "params", "exponent", "likelihood", "se"}
    members = auto.chosen_["members"]
    assert sum(member.weight for member in members) == pytest.approx(1)
    tried = [(row["name"], row["params"], row["exponent"]) for row in auto.tried_]
    assert all(tuple(member[:3]) in tried for member in members)


def test_auto_votes_as_its_members_do():
    """The weighted mean of their calibrated probabilities, also of left-out votes."""
    X, _, codes = coded(300)
    auto = Auto().fit(X, codes, rng())
    again = auto.fixed().fit(X, codes, rng())
    parts = [
        member.weight * smoothing.probabilities(made.votes(X), member.exponent)
        for member, made in zip(auto.chosen_["members"], auto.learners_, strict=True)
    ]
    assert auto.votes(X) == pytest.approx(sum(parts))
    for learner in (auto, again):
        votes = learner.without_own().votes
        assert votes.sum(axis=1) == pytest.approx(1)
        assert np.abs(votes - learner.votes(X)).max() > 1e-3


def test_a_mixture_is_the_likeliest_one():
    """No other weights make the codes likelier, but for what is counted beforehand."""
    evidence = rng().gamma([2.0, 1.0, 0.3, 1.0], size=(4000, 4))
    even = np.full(4, 0.25)
    weights = mixture_weights(evidence, even)
    best = minimize(lambda w: -np.log(evidence @ softmax(w)).mean(), np.zeros(4))
    assert weights == pytest.approx(softmax(best.x), abs=0.02)
    prior = np.array([0.5, 0.3, 0.1, 0.1])
    assert mixture_weights(np.ones((50, 4)), prior) == pytest.approx(prior)


@pytest.mark.parametrize("kind", ["line", "cross"])
def test_auto_is_near_the_best_family(kind):
    """Logistic models where labels are logistic in the features, else neighbourhoods.

    In either world the other family, alone, is the broken twin.
    """
    X, families = rng().normal(size=(1500, 8)), ["features", "graph"]
    score = X @ [2.5, -2.0, 1.5, 1.0, -1.0, 0, 0, 0]
    if kind == "cross":
        X[:, 2:] *= 0.1
        score, families = 3 * np.sign(X[:, 0] * X[:, 1]), families[::-1]
    y = (rng().logistic(size=1500) < score).astype(int)
    codes = encode(y[:600], [0, 1], 2.0, random_state=0)

    def right(learner):
        votes = learner.fit(X[:600], codes, rng()).votes(X[600:])
        return (votes.argmax(axis=1) == (score > 0)[600:]).mean()

    best, twin = (right(LikelihoodVotes(columns=name)) for name in families)
    assert right(Auto()) > best - 0.03 > twin


def test_auto_on_a_graph_that_is_given():
    """The graph is taken as it is, also by the learner with stated settings."""
    X, _, codes = coded(300)
    spectral = Spectral(m=40, anchors=60, random_state=0).fit(X)
    auto = Auto(spectral).fit(X, codes, rng())
    graphs = [getattr(made, "spectral_", spectral) for made in auto.learners_]
    assert all(graph is spectral for graph in graphs)
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
    base = smoothing.Trial("a", {}, 1, np.zeros(1000))
    close = smoothing.Trial("b", {}, 1, noise - noise.mean() + 0.5 / np.sqrt(1000))
    clear = smoothing.Trial("c", {}, 1, noise - noise.mean() + 2 / np.sqrt(1000))
    assert smoothing.likeliest_trial([base, close]) is close
    assert smoothing.simplest_trial([base, close]) is base
    assert smoothing.simplest_trial([base, clear]) is clear


@pytest.mark.parametrize(
    ("make_it", "said"),
    [
        (lambda: KNN(k=60), "k is 60, but X has n_samples = 60"),
        (lambda: KNN(k=0), "k is 0"),
        (lambda: SpectralVotes(anchors=61), "anchors is 61"),
        (lambda: SpectralVotes(3, anchors=10, neighbours=11), "neighbours is 11"),
        (lambda: RidgeVotes(-1.0), "alpha is -1"),
        (lambda: SpectralVotes(steps=-1.0), "steps is -1"),
        (lambda: LikelihoodVotes(m=0), "m is 0"),
        (
            lambda: make(KNeighborsRegressor(61)),
            "n_neighbors is 61, but n_sam",
        ),
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


RNG = np.random.default_rng(0)


def graph(X):
    """Return a small graph."""
    return Spectral(m=12, anchors=40, neighbours=4, random_state=0).fit(X)


def test_of_neighbours():
    """A record's vote is the vote for it of all others' model."""
    X, _, codes = coded(80)
    votes = knn.KNN(k=7).fit(X, codes, RNG).without_own().votes
    for i in range(0, 80, 9):
        rest = np.delete(np.arange(80), i)
        one = knn.KNN(k=7).fit(X[rest], codes[rest], RNG)
        assert votes[i] == pytest.approx(one.votes(X[[i]])[0], abs=1e-12)


@pytest.mark.parametrize("alpha", [0.1, 30.0])
def test_of_ridge(alpha):
    """Refits by scikit-learn's ridge regression, with its intercept."""
    X, _, codes = coded(80)
    votes = knn.RidgeVotes(alpha).fit(X, codes, RNG).without_own().votes
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
        knn.NeighbourMean(knn.nearest_neighbours(X, 9)),
        BasisRegression(basis, basis.shrinkage(12, 1.0)),
    ]


@pytest.mark.parametrize("kind", [0, 1])
def test_folds_do_not_know_the_codes_they_judge(kind):
    """Other codes in one fold change no vote for that fold's records."""
    X, _, codes = coded(100)
    smoother = smoothers(X)[kind]
    held = smoothing.fold_masks(len(X), np.random.default_rng(1))
    known = smoothing.CodeTargets.from_codes(codes)
    before = smoothing.folded_votes(smoother, known, [2, 1], held)
    fold = held[0]
    decoded, likely = known.decoded.copy(), known.likely.copy()
    decoded[fold] = decoded[fold][::-1]
    likely[fold] = likely[fold][::-1]
    after = smoothing.folded_votes(
        smoother, smoothing.CodeTargets(decoded, likely), [2, 1], held
    )
    for old, new in zip(before, after, strict=True):
        assert new[fold] == pytest.approx(old[fold], abs=1e-12)
        assert np.abs(new[~fold] - old[~fold]).max() > 1e-3


@pytest.mark.parametrize("kind", [0, 1])
def test_a_sweep_leaks_without_folds(kind):
    """The broken twin: left-out votes after a sweep still know the record's code."""
    X, _, codes = coded(100)
    smoother, known = smoothers(X)[kind], smoothing.CodeTargets.from_codes(codes)
    naive = smoothing.run_sweeps(smoother, known, 1, [2]).votes[1]
    likely = known.likely.copy()
    decoded = known.decoded.copy()
    decoded[0], likely[0] = decoded[0][::-1], likely[0][::-1]
    other = smoothing.run_sweeps(
        smoother, smoothing.CodeTargets(decoded, likely), 1, [2]
    ).votes[1]
    assert np.abs(naive[0] - other[0]).max() > 1e-4


def test_a_sweep_by_hand():
    """Posteriors under the left-out votes, averaged again over the neighbours."""
    X, _, codes = coded(60)
    learner = knn.KNN(k=8, sweeps=1).fit(X, codes, RNG)
    near = knn.nearest_neighbours(X, 8)
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
    learner = knn.KNN(k=7).fit(X, codes, RNG)
    assert learner.without_own().rows is not None
    again = pickle.loads(pickle.dumps(learner))
    assert again.without_own().votes is None
    assert (again.votes(X) == learner.votes(X)).all()


FORESTS = [
    RandomForestRegressor(20, min_samples_leaf=20, random_state=0),
    RandomForestClassifier(20, min_samples_leaf=20, random_state=0),
    make_pipeline(StandardScaler(), RandomForestRegressor(20, min_samples_leaf=20)),
]
OTHERS = [
    Ridge(),
    SVR(),
    KNeighborsRegressor(40),
    KNeighborsClassifier(40),
    make_pipeline(StandardScaler(), PolynomialFeatures(3), LogisticRegression()),
    MLPClassifier((8,), solver="lbfgs", max_iter=1000, alpha=10, random_state=0),
]


def fitted(estimator, encoder="vector"):
    """Return a learner and the share of right answers for new records."""
    X, _, codes = coded(600, encoder=encoder)
    new, truth = circle(300, 4, seed=9)
    learner = make(estimator).fit(X, codes, np.random.default_rng(0))
    votes = learner.votes(new)
    return learner, (votes.argmax(axis=1) == truth).mean()


@pytest.mark.parametrize("encoder", ["vector", "subset", "rr"])
@pytest.mark.parametrize("place", range(len(OTHERS)))
def test_each_learns(place, encoder):
    """Regressors on decoded codes, classifiers on bits, one column or many."""
    learner, right = fitted(OTHERS[place], encoder)
    assert right > 0.8
    assert learner.without_own().votes is None


@pytest.mark.parametrize("forest", FORESTS)
def test_a_forest_has_left_out_votes(forest):
    """Out of bag, of all records."""
    learner, right = fitted(forest)
    assert right > 0.8
    assert learner.without_own().votes.shape == (600, 4)


def test_bits_are_mapped_back():
    """A classifier's mean bits over neighbours are the mean decoded codes."""
    X, _, codes = coded(200, encoder="vector")
    rng = np.random.default_rng(0)
    bits = make(KNeighborsClassifier(15)).fit(X, codes, rng).votes(X)
    assert bits == pytest.approx(KNN(k=15).fit(X, codes, rng).votes(X), abs=1e-9)


def test_the_given_estimator_stays_as_it_is():
    """A copy learns, with a seed of its own; twice the same."""
    forest = RandomForestRegressor(5)
    X, _, codes = coded(100)
    votes = [
        make(forest).fit(X, codes, np.random.default_rng(1)).votes(X) for _ in range(2)
    ]
    assert (votes[0] == votes[1]).all()
    assert not hasattr(forest, "estimators_")
    assert forest.random_state is None


def test_codes_without_bits_want_a_regressor():
    """Soft labels of alibi are no bits."""
    X, _, codes = coded(100, encoder="alibi")
    with pytest.raises(UserError, match="a classifier learns bits"):
        make(LogisticRegression()).fit(X, codes, np.random.default_rng(0))


@pytest.mark.parametrize("encoder", ["subset", "rr", "vector"])
def test_the_gradient_is_that_of_finite_differences(encoder):
    """At random coefficients, with and without much of a penalty."""
    X, _, codes = coded(50, encoder=encoder)
    basis = np.column_stack([np.ones(50), X])
    start = np.random.default_rng(3).normal(size=(3, 4))

    for ridge in (0.1, 20.0):

        def value(flat, ridge=ridge):
            return spectral.penalised_objective(
                flat.reshape(3, 4), basis, codes.likelihood(), ridge
            )[0]

        def slope(flat, ridge=ridge):
            made = spectral.penalised_objective(
                flat.reshape(3, 4), basis, codes.likelihood(), ridge
            )
            return made[1].ravel()

        assert check_grad(value, slope, start.ravel()) < 1e-6


def test_without_noise_it_is_logistic_regression():
    """At a huge epsilon the code is the label."""
    X, y = circle(300, 3)
    codes = encode(y, [0, 1, 2], 40.0, "rr", 0)
    learner = spectral.LikelihoodVotes(ridge=5.0, columns="features").fit(X, codes, RNG)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    columns = np.column_stack([np.ones(300), scaled])
    plain = LogisticRegression(C=1 / 5, tol=1e-10, fit_intercept=False).fit(columns, y)
    assert learner.votes(X) == pytest.approx(plain.predict_proba(columns), abs=2e-3)


@pytest.mark.parametrize("columns", ["graph", "features"])
def test_maximum_likelihood_learns(columns):
    """Nearly all of a clear world, with a ridge that codes chose."""
    X, y, codes = coded(600)
    learner = spectral.LikelihoodVotes(columns=columns).fit(X, codes, RNG)
    votes = learner.votes(X)
    assert votes.sum(axis=1) == pytest.approx(1)
    assert (votes.argmax(axis=1) == y).mean() > 0.95
    assert learner.fixed().ridge == learner.chosen_["ridge"]


def test_no_class_is_lost_to_noise():
    """Without a penalty on the constant a rare class may lose its share for good."""
    X, y = circle(900, 4)
    kept = (y > 0) | (np.arange(900) % 4 == 0)
    X, y = X[kept], y[kept]
    lost = 0
    for seed in range(10):
        codes = encode(y, np.arange(4), 0.7, random_state=seed)
        learner = spectral.LikelihoodVotes(ridge=10.0, columns="features")
        lost += learner.fit(X, codes, RNG).votes(X)[:, 0].max() < 1e-3
    assert not lost


def test_a_ridge_is_above_0():
    """Ridge 0 has no maximum where classes can be parted."""
    X, _, codes = coded(60)
    with pytest.raises(UserError, match="ridge is 0"):
        spectral.LikelihoodVotes(ridge=0.0).fit(X, codes, RNG)
