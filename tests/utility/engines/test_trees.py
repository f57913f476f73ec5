"""Trees: which are read, their cells, and the boxes of one answer."""

import re
from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn import preprocessing
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.systems.utility.method.engines.base import Draws, Question
from curvote.systems.utility.method.engines.trees import cells as axes_module
from curvote.systems.utility.method.engines.trees import engine
from curvote.systems.utility.method.engines.trees.engine import Trees, cell_counts
from tests.utility import models_of
from tests.utility.models_of import DATA, digits_like, forest, stroke_like
from tests.utility.trees_of import (
    KINDS,
    At,
    answered,
    asked,
    corners,
    fitted,
    predicted,
    read,
)

EVERY = list(product(KINDS, DATA))


@pytest.mark.parametrize(("kind", "data"), EVERY)
def test_a_cell_has_the_answer_of_the_model(kind, data):
    """At cuts, one float behind them and anywhere, and at the records themselves."""
    surface = read(asked(fitted(kind, data), data))
    for i in range(5):
        points = corners(surface, 400, seed=i)
        expected = predicted(surface.question, i, points)
        assert (answered(surface, i, points) == expected).all()
        own = surface.question.values[[i]]
        assert answered(surface, i, own)[0] == surface.clean[i]


def between_the_values_of_training():
    """Return records whose values are in the middle of two that trees were fitted to.

    Thresholds are such middles, in float64 of float32 values: they are not the values.
    """
    given = stroke_like(400)
    X = given.X.copy()
    X[:, 0], X[:, 5] = np.round(X[:, 0] / 2) * 0.02, np.round(X[:, 5] / 2) * 0.02
    model = RandomForestClassifier(15, random_state=1).fit(X, given.y)
    records = X[:200].copy()
    records[:, [0, 5]] = np.round(records[:, [0, 5]] + 0.01, 2)
    return Question(model, records, (0, 5), np.array([[0.0, 1.02], [0.0, 1.02]]))


def shares_at_own_values(question):
    """Return the share of the clean answer when nothing is noised, and the answers."""
    surface = read(question)
    channel: Any = At(question.values)
    share = surface.answers(channel, Draws()).share
    return share[np.arange(len(share)), surface.clean], surface.clean


def test_an_atom_at_the_own_value_lies_in_the_own_cell():
    """Values are compared as float32, as scikit-learn does."""
    share, _ = shares_at_own_values(between_the_values_of_training())
    assert (share == 1).all()


def test_without_the_cast_atoms_land_in_wrong_cells(monkeypatch):
    """The broken twin of the test above."""
    monkeypatch.setattr(axes_module, "float32_cuts", lambda thresholds: thresholds)
    share, _ = shares_at_own_values(between_the_values_of_training())
    assert (share == 0).any()


def test_a_cut_is_the_last_float_that_goes_left():
    """For thresholds between, on and half between float32 values."""
    rng = np.random.default_rng(1)
    single = rng.normal(size=300).astype(np.float32).astype(np.float64)
    following = np.nextafter(single.astype(np.float32), np.float32(9)).astype(float)
    given = np.concatenate([rng.normal(size=300), single, (single + following) / 2])
    cuts = axes_module.float32_cuts(given)
    after = np.nextafter(cuts, np.inf)
    assert (cuts.astype(np.float32).astype(float) <= given).all()
    assert (after.astype(np.float32).astype(float) > given).all()


def coarse(seed, classes):
    """Return a forest of few impure leaves, which ties often."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 4, (40, 3)) * 1.0, rng.integers(0, classes, 40)
    model = RandomForestClassifier(6, max_depth=3, random_state=seed, bootstrap=False)
    bounds = np.array([[0.0, 3.0], [0.0, 3.0]])
    return Question(model.fit(X, y), X[:8], (0, 1), bounds)


GRID = np.array(list(product(range(4), range(4)))) * 1.0


def wrong_at_ties(question):
    """Return at how many points of a grid cells and model differ."""
    surface = read(question)
    pairs = [
        (answered(surface, i, GRID), predicted(question, i, GRID)) for i in range(8)
    ]
    return int(sum((own != given).sum() for own, given in pairs))


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_near_ties_are_the_models_to_break(classes):
    """Sums of thirds tie or not by the order in which they are added."""
    questions = [coarse(seed, classes) for seed in range(12)]
    assert sum(read(each).query_counts.sum() for each in questions) > 0
    assert sum(wrong_at_ties(each) for each in questions) == 0


def test_ties_broken_by_exact_sums_are_sometimes_wrong(monkeypatch):
    """The broken twin: nothing is asked."""
    known = engine.cells.whole_units

    def sure(table):
        found = known(table)
        return type(found)(found.value, found.start, 0)

    monkeypatch.setattr(engine.cells, "whole_units", sure)
    assert sum(wrong_at_ties(coarse(seed, 2)) for seed in range(12)) > 0


def test_forests_of_pure_leaves_ask_nothing():
    """Their sums are whole numbers: a tie is a tie, for the model as well."""
    assert read(asked(fitted("forest", "stroke"), "stroke")).query_counts.sum() == 0


def test_shares_that_miss_one_by_a_bit_are_no_exact_tie():
    """Their difference is 0, but not what adding them to others rounds to."""
    question = coarse(3, 2)
    trees = [each.tree_ for each in question.model.estimators_]
    for tree in trees:
        tree.value[:, 0] = np.eye(2)[np.argmax(tree.value[:, 0], axis=1)]
    assert read(question).query_counts.sum() == 0
    for tree in trees[::3]:
        tree.value[:, 0] = np.nextafter(0.5, 0)
    assert read(question).query_counts.sum() > 0
    assert wrong_at_ties(question) == 0


@pytest.mark.parametrize("kind", ["boosting from zero", "hist boosting"])
def test_a_sum_of_zero_is_the_models_own_class(kind):
    """Where nothing can be learnt the sum is 0: one kind says yes, the other no."""
    X = np.repeat(np.arange(4.0), 20)[:, None]
    model = clone(KINDS[kind]).fit(X, np.tile([0, 1], 40))
    surface = read(Question(model, X[:3], (0,), np.array([[0.0, 3.0]])))
    points = np.linspace(0, 3, 9)[:, None]
    expected = predicted(surface.question, 0, points)
    assert (answered(surface, 0, points) == expected).all()


@pytest.mark.parametrize("sensitive", [(4,), (0, 3, 7)])
@pytest.mark.parametrize("kind", ["boosting", "shallow forest", "hist boosting"])
def test_one_or_three_features_are_exact_as_well(kind, sensitive):
    """Cells of any number of dimensions."""
    bounds = np.tile([0.0, 1.0], (len(sensitive), 1))
    records = digits_like(3, 5).X
    surface = read(Question(fitted(kind, "digits"), records, sensitive, bounds))
    for i in range(3):
        points = corners(surface, 300, seed=i)
        expected = predicted(surface.question, i, points)
        assert (answered(surface, i, points) == expected).all()


SCALERS = [
    preprocessing.StandardScaler(),
    preprocessing.MinMaxScaler(),
    preprocessing.RobustScaler(),
    make_pipeline(preprocessing.MaxAbsScaler(), preprocessing.StandardScaler()),
    # One-hot columns beside scaled ones: the record decides those splits.
    make_column_transformer(
        (preprocessing.OneHotEncoder(), [1, 2, 3]),
        (preprocessing.StandardScaler(), [0, 4, 5]),
    ),
]


def behind(*steps):
    """Return the question of a forest behind steps, fitted to people."""
    given = stroke_like()
    trees = ExtraTreesClassifier(5, random_state=1)
    model = make_pipeline(*(clone(step) for step in steps), trees)
    return asked(model.fit(given.X, given.y), "stroke", n=3)


def wrong_cells(question):
    """Return at how many corners of cells the cells and the model differ."""
    surface, wrong = read(question), 0
    for i in range(len(question.records)):
        points = corners(surface, 400, seed=i)
        expected = predicted(question, i, points)
        wrong += int((answered(surface, i, points) != expected).sum())
    return wrong


@pytest.mark.parametrize("scaler", SCALERS, ids=lambda each: type(each).__name__)
def test_scalers_are_undone_to_the_last_float(scaler):
    """Cuts are found in the scaler's own arithmetic: subtraction, division, float32."""
    assert wrong_cells(behind(scaler)) == 0


def test_cuts_mapped_back_by_a_formula_are_wrong(monkeypatch):
    """The broken twin: the scaler's inverse in float64."""
    question = behind(preprocessing.StandardScaler())
    scaler = question.model[0]

    def inverted(given, *others):
        (_, column), thresholds = others[2], others[3]
        return thresholds * scaler.scale_[column] + scaler.mean_[column]

    monkeypatch.setattr(axes_module, "_bisect_cuts", inverted)
    assert wrong_cells(question) > 0


def test_histograms_read_categories_and_gaps_of_other_columns():
    """Categories, unknown ones, and missing values take their sides."""
    given = stroke_like(600)
    X = given.X.copy()
    X[:, 1] = X[:, 4] // 40
    X[::7, 4] = np.nan
    model = HistGradientBoostingClassifier(
        max_iter=12, categorical_features=[1, 3], random_state=1
    ).fit(X, given.y)
    records = X[:8].copy()
    records[0, 1], records[1, 4], records[2, 3] = 77, np.nan, np.nan
    assert wrong_cells(Question(model, records, given.sensitive, given.bounds)) == 0


def test_trees_read_gaps_of_other_columns():
    """A forest fitted to gaps sends them as it learnt."""
    given = stroke_like()
    X = given.X.copy()
    X[::5, 4] = np.nan
    model = RandomForestClassifier(8, random_state=1).fit(X, given.y)
    assert wrong_cells(Question(model, X[:6], given.sensitive, given.bounds)) == 0


def test_classes_may_have_any_names():
    """Answers are places in ``classes_``, of near ties as well."""
    given = stroke_like()
    names = np.array(["yes", "no"])[given.y]
    model = RandomForestClassifier(9, max_depth=3, random_state=1).fit(given.X, names)
    assert wrong_cells(asked(model, "stroke")) == 0


def refusals():
    """Return models that are no sums of leaves over thresholds, and words why."""
    given = stroke_like()
    X, y = given.X, given.y
    first = LogisticRegression(max_iter=5000)
    named = HistGradientBoostingClassifier(max_iter=9, categorical_features=[0])
    X_named = np.column_stack([X[:, 0] // 20, X[:, 1:]])
    mixed = make_pipeline(PCA(4), DecisionTreeClassifier())
    bent = make_pipeline(preprocessing.PowerTransformer(), DecisionTreeClassifier())
    return {
        "linear": (first.fit(X, y), "no ensemble of trees"),
        "clusters": (KMeans(2, n_init=1).fit(X), "no ensemble of trees"),
        "mixed": (mixed.fit(X, y), "mixes sensitive"),
        "named": (named.fit(X_named, y), "by categories"),
        "first": (
            GradientBoostingClassifier(n_estimators=2, init=first).fit(X, y),
            "first guess",
        ),
        "several": (
            DecisionTreeClassifier().fit(X, np.column_stack([y, y])),
            "several questions",
        ),
        "lone": (DecisionTreeClassifier().fit(X, np.zeros(len(X))), "one class only"),
        "boosted": (AdaBoostClassifier(first, n_estimators=2).fit(X, y), "no decision"),
        "bent": (bent.fit(X, y), "bends"),
    }


def test_what_is_no_sum_of_leaves_is_refused_with_the_reason():
    """Each reason is one sentence; making the surface all the same is an error."""
    for model, words in refusals().values():
        question = asked(model, "stroke")
        reason = Trees().refusal(question)
        assert reason is not None
        assert words in reason
        assert reason.endswith(".")
        with pytest.raises(UserError, match=re.escape(reason)):
            Trees().surface(question)


def test_cells_are_counted_as_they_would_be_made(monkeypatch):
    """The count of each record is that of the sums which are made for it."""
    question, made = asked(fitted("forest", "stroke"), "stroke"), []
    real = engine.cells.cell_sums

    def noted(*given):
        total = real(*given)
        made.append(total[0].size)
        return total

    monkeypatch.setattr(engine.cells, "cell_sums", noted)
    counted = cell_counts(question)
    assert not made
    read(question)
    assert counted.tolist() == made


@pytest.mark.parametrize("limit", ["MOST_CELLS", "MOST_BYTES"])
def test_a_surface_that_would_not_fit_is_refused_before_it_is_made(monkeypatch, limit):
    """The reason names the number of cells, and what takes their place."""
    question = asked(forest(), "stroke")
    monkeypatch.setattr(engine.cells, "cell_sums", None)
    monkeypatch.setattr(engine, limit, 10)
    reason = Trees().refusal(question)
    assert reason is not None
    assert f"{cell_counts(question).sum():.3g} cells" in reason
    assert "draws take their place" in reason


def test_cells_are_counted_where_all_cuts_of_the_trees_would_not_fit(monkeypatch):
    """A record reaches few of the trees' cuts: those that fit exactly are made."""
    question = asked(forest(), "stroke")
    total = int(cell_counts(question).sum())
    monkeypatch.setattr(engine, "MOST_CELLS", total)
    assert Trees().refusal(question) is None
    monkeypatch.setattr(engine, "MOST_CELLS", total - 1)
    assert Trees().refusal(question) is not None


@pytest.mark.parametrize("kind", ["forest", "boosting", "ada"])
def test_slabs_make_the_same_answers(monkeypatch, kind):
    """However thin the slabs in which cells are made."""
    question = asked(fitted(kind, "digits"), "digits")
    whole = read(question)
    monkeypatch.setattr(engine, "SLAB_BYTES", 1000)
    thin = read(question)
    for i in range(5):
        points = corners(whole, 400, seed=i)
        assert (answered(thin, i, points) == answered(whole, i, points)).all()
    assert len(thin.boxes.answer) <= 2 * len(whole.boxes.answer)


EVERY_KIND = list(product(KINDS, DATA))


@pytest.mark.parametrize(("kind", "data"), EVERY_KIND)
def test_shares_are_sums_over_all_outputs(kind, data):
    """For k-RR the model is asked for each of its outputs, weighed by the channel."""
    question = asked(fitted(kind, data), data, n=2)
    channel = models_of.channel(question, "k_rr", 4, n_classes=21)
    found = read(question).answers(channel, Draws())
    law = channel.law(question.values)
    assert law is not None
    for i, share in enumerate(found.share):
        first, second = law.terms[0]
        points = np.array(list(product(first.points[i], second.points[i])))
        weights = np.outer(first.masses[i], second.masses[i]).ravel()
        classes = predicted(question, i, points)
        expected = np.bincount(classes, weights, len(share))
        assert share == pytest.approx(expected, abs=1e-12)
    assert found.evidence == "exact"


@pytest.mark.parametrize(
    ("kind", "data", "name"),
    [
        ("forest", "stroke", "pm_01"),
        ("forest", "digits", "joint_box"),
        ("boosting", "stroke", "joint_box"),
        ("boosting", "digits", "laplace"),
        ("hist boosting", "stroke", "square_wave"),
        ("hist boosting", "digits", "hybrid"),
        ("ada", "stroke", "exponential"),
    ],
)
def test_exact_shares_agree_with_draws(kind, data, name):
    """Within 4.5 standard errors of 4,000 draws of the real mechanism."""
    question = asked(fitted(kind, data), data, n=6)
    channel = models_of.channel(question, name, 3)
    share = read(question).answers(channel, Draws()).share
    number = 4000
    for i in range(6):
        values = np.tile(question.values[i], (number, 1))
        seen = channel.draw(values, SeededEntropy(i))
        drawn = np.bincount(predicted(question, i, seen), minlength=share.shape[1])
        deviation = np.sqrt(np.maximum(share[i] * (1 - share[i]), 1e-3) / number)
        assert (np.abs(drawn / number - share[i]) <= 4.5 * deviation).all()


@pytest.mark.parametrize(("kind", "data"), [("forest", "stroke"), ("ada", "digits")])
def test_a_box_holds_where_all_its_points_have_the_clean_answer(kind, data):
    """The closed box is enumerated: at its upper ends and at each cut inside."""
    question = asked(fitted(kind, data), data, n=8)
    surface = read(question)
    rng, width = np.random.default_rng(4), np.diff(question.bounds, axis=1)[:, 0]
    seen = set()
    for share in (0.0, 0.003, 0.01, 0.03, 0.1, 0.3):
        low = question.values - rng.random((8, 2)) * share * width
        high = question.values + rng.random((8, 2)) * share * width
        holds = surface.holds(low, high)
        for i in range(8):
            sides = [
                np.append(cuts[(cuts >= a) & (cuts < b)], b)
                for cuts, a, b in zip(surface.cuts, low[i], high[i], strict=True)
            ]
            points = np.array(list(product(*sides)))
            right = predicted(question, i, points) == surface.clean[i]
            assert holds[i] == right.all()
            seen.add(bool(holds[i]))
    assert seen == {True, False}


@pytest.mark.parametrize("size", [1, 700, 3000])
def test_records_may_be_taken_in_pieces(monkeypatch, size):
    """Their shares do not depend on how many are held at once."""
    question = asked(fitted("forest", "stroke"), "stroke", n=30)
    surface = read(question)
    channel = models_of.channel(question, "joint_box", 2)
    whole = surface.answers(channel, Draws()).share
    monkeypatch.setattr(engine, "CHUNK_NUMBERS", size)
    assert len(list(surface._record_chunks())) > 1
    assert surface.answers(channel, Draws()).share == pytest.approx(whole, abs=1e-14)


def test_what_is_withheld_leaves_one_line():
    """All of epsilon on the first feature: the second is always the constant."""
    question = asked(fitted("boosting", "stroke"), "stroke", n=4)
    surface = read(question)
    channel = models_of.channel(question, "k_rr", 2, split=[1, 0])
    share = surface.answers(channel, Draws()).share
    law = channel.law(question.values)
    assert law is not None
    for i in range(4):
        first = law.terms[0][0]
        points = np.column_stack([first.points[i], np.full(first.points[i].shape, 36)])
        expected = np.bincount(predicted(question, i, points), first.masses[i], 2)
        assert share[i] == pytest.approx(expected, abs=1e-12)
