"""Engines: how one is chosen, and surfaces: kept, without a law, and their boxes."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.systems.utility.method.engines import base
from tests.utility import models_of
from tests.utility.models_of import channel
from tests.utility.trees_of import KINDS

DATA = models_of.stroke_like()
MODELS = {
    "bayes": GaussianNB(),
    "qda": QuadraticDiscriminantAnalysis(reg_param=0.1),
    "forest": KINDS["forest"],
    "boosting": KINDS["boosting"],
}
EVERY = [
    ("linear", "logistic", "stroke"),
    ("linear", "logistic", "digits"),
    ("closed_form", "qda", "stroke"),
    ("trees", "forest", "digits"),
    ("network", "network", "digits"),
    ("branched_trees", "boosting", "stroke"),
]


def surface_of(engine, name, data, n):
    """Return the engine's surface of a model and the first records."""
    given = models_of.DATA[data]()
    if name in MODELS:
        model = MODELS[name].fit(given.X, given.y)
    else:
        model = getattr(models_of, name)(data)
    question = base.Question(model, given.X[:n], given.sensitive, given.bounds)
    return base.make_engine(engine).surface(question)


@pytest.mark.parametrize(("engine", "name", "data"), EVERY)
def test_kept_surface_answers_as_the_first(engine, name, data, tmp_path):
    """What a file without pickles holds is enough: bit by bit, and boxes as well."""
    surface = surface_of(engine, name, data, 4)
    np.savez(tmp_path / "kept.npz", **surface.arrays())
    with np.load(tmp_path / "kept.npz", allow_pickle=False) as kept:
        again = base.make_engine(engine).restored(surface.question, dict(kept))
    through = channel(surface.question, "pm_01")
    one, other = (each.answers(through, base.Draws()) for each in (surface, again))
    assert np.array_equal(one.share, other.share)
    assert np.array_equal(one.lower, other.lower)
    assert np.array_equal(surface.clean, again.clean)
    ends = surface.question.values - 0.1, surface.question.values + 0.1
    assert np.array_equal(surface.holds(*ends), again.holds(*ends))


@pytest.mark.parametrize(("engine", "name", "data"), EVERY)
def test_channel_without_a_law_is_drawn(engine, name, data):
    """PrivUnit's law is no mixture of products: the surface says so, and draws."""
    surface = surface_of(engine, name, data, 2)
    through = channel(surface.question, "privunit", 4.0)
    found = surface.answers(through, base.Draws(300, entropy=SeededEntropy(1)))
    assert found.evidence == "draws"
    assert (found.queries >= 300).all()
    assert (found.lower < found.upper).all()


@pytest.mark.parametrize(
    ("engine", "name", "data", "missed"),
    [
        ("linear", "logistic", "stroke", 0),
        ("linear", "logistic", "digits", 0),
        ("closed_form", "qda", "stroke", 1),
        ("closed_form", "bayes", "stroke", 1),
        ("closed_form", "qda", "digits", 1),
        ("network", "network", "stroke", 4),
    ],
)
def test_boxes_that_hold_have_one_answer(engine, name, data, missed):
    """No point of a box that holds is answered otherwise; few others look so."""
    surface = surface_of(engine, name, data, 60)
    question, rng = surface.question, np.random.default_rng(4)
    reach = rng.uniform(0, 0.45, (60, 2)) * np.diff(question.bounds)[:, 0]
    low, high = question.values - reach, question.values + reach
    steps = np.stack(np.meshgrid(*[np.linspace(0, 1, 17)] * 2), -1).reshape(-1, 1, 2)
    rows = np.tile(question.records, (len(steps), 1))
    rows[:, list(question.sensitive)] = (low + steps * (high - low)).reshape(-1, 2)
    places = np.searchsorted(question.model.classes_, question.model.predict(rows))
    same = (places.reshape(-1, 60) == surface.clean).all(axis=0)
    held = surface.holds(low, high)
    assert not (held & ~same).any()
    assert (same & ~held).sum() <= missed
    assert 5 < held.sum() < 55
    assert surface.holds(question.values, question.values).all()


def asked(model):
    """The question of ten people's answers."""
    return base.Question(model, DATA.X[:10], DATA.sensitive, DATA.bounds)


@pytest.mark.parametrize("name", base.ENGINES)
def test_engine_of_the_registry_loads(name):
    """Each line of the registry names an engine of that name."""
    assert base.make_engine(name).name == name


@pytest.mark.parametrize(
    ("model", "name", "reasons"),
    [
        (models_of.logistic, "linear", ""),
        (models_of.forest, "trees", "RandomForestClassifier is not linear."),
        (models_of.network, "network", "MLPClassifier is not linear."),
    ],
)
def test_first_engine_that_can_reads_the_model(model, name, reasons):
    """And the reasons of those before it are said."""
    found, said = base.choose_engine(asked(model()))
    assert (found.name, said[: len(reasons)]) == (name, reasons)
    assert bool(said) == bool(reasons)


def test_what_nobody_reads_is_drawn():
    """With a reason from each engine, or refused where draws are no answer."""
    model = KNeighborsClassifier(3).fit(DATA.X, DATA.y)
    found, said = base.choose_engine(asked(model))
    assert found.name == "black_box"
    assert said.count("KNeighborsClassifier") >= 3
    for evidence in ("exact", "bracket"):
        with pytest.raises(UserError, match="KNeighborsClassifier is not linear") as no:
            base.choose_engine(asked(model), evidence)
        assert "Let it be drawn" in str(no.value)


def test_draws_may_be_asked_for():
    """A model that could be read is drawn if that is wanted."""
    found, said = base.choose_engine(asked(models_of.logistic()), "draws")
    assert (found.name, said) == ("black_box", "Draws were asked for.")
