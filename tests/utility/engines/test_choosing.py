"""Choosing an engine: the first that does not refuse, and why others did."""

from __future__ import annotations

import pytest
from sklearn.neighbors import KNeighborsClassifier

from curvote.base.errors import UserError
from curvote.systems.utility.method.engines.base import (
    ENGINES,
    Question,
    choose_engine,
    make_engine,
)
from tests.utility import models_of

DATA = models_of.stroke_like()


def asked(model):
    """The question of ten people's answers."""
    return Question(model, DATA.X[:10], DATA.sensitive, DATA.bounds)


@pytest.mark.parametrize("name", ENGINES)
def test_engine_of_the_registry_loads(name):
    """Each line of the registry names an engine of that name."""
    assert make_engine(name).name == name


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
    found, said = choose_engine(asked(model()))
    assert (found.name, said[: len(reasons)]) == (name, reasons)
    assert bool(said) == bool(reasons)


def test_what_nobody_reads_is_drawn():
    """With a reason from each engine, or refused where draws are no answer."""
    model = KNeighborsClassifier(3).fit(DATA.X, DATA.y)
    found, said = choose_engine(asked(model))
    assert found.name == "black_box"
    assert said.count("KNeighborsClassifier") >= 3
    for evidence in ("exact", "bracket"):
        with pytest.raises(UserError, match="KNeighborsClassifier is not linear") as no:
            choose_engine(asked(model), evidence)
        assert "Let it be drawn" in str(no.value)


def test_draws_may_be_asked_for():
    """A model that could be read is drawn if that is wanted."""
    found, said = choose_engine(asked(models_of.logistic()), "draws")
    assert (found.name, said) == ("black_box", "Draws were asked for.")
