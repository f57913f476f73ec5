"""Every public name has a docstring with an example, and the example runs."""

import doctest
import inspect
import re
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from tests.public_names import described, public_names, sections

NAMES = public_names()
ESTIMATORS = [
    name
    for name, thing in NAMES.items()
    if inspect.isclass(thing) and issubclass(thing, BaseEstimator)
]
FIT = {
    "curvote.PrivateLabelRegressor": {"epsilon": 4.0},
    "curvote.PrivateSearchCV": {"holdout": 0.5},
    "curvote.Spectral": {"m": 2, "anchors": 20},
}

# They take curves or images, which the test of others has none of.
OF_FORM = [name for name in ESTIMATORS if re.search("Curve|Image", name)]


def test_all_public_names_have_an_example() -> None:
    """100 % of them, under a headline of numpydoc."""
    without = [name for name, thing in NAMES.items() if not _example(thing)]
    assert not without
    assert len(NAMES) >= 49


def _example(thing: Any) -> bool:
    return ">>> " in sections(thing).get("Examples", "")


@pytest.mark.parametrize("name", NAMES)
def test_the_example_shows_what_happens(name: str) -> None:
    """Run as a doctest, where it stands; a warning is an error."""
    thing = NAMES[name]
    finder = doctest.DocTestFinder(recurse=False)
    where = inspect.getmodule(thing)
    (found,) = finder.find(thing, name, module=where)
    runner = doctest.DocTestRunner()
    said: list[str] = []
    runner.run(found, out=said.append)
    assert not runner.failures, "".join(said)
    assert runner.tries


@pytest.mark.parametrize("name", NAMES)
def test_no_section_is_of_another_form(name: str) -> None:
    """Neither Google's headlines with a colon, nor a rule under such a one."""
    text = inspect.getdoc(NAMES[name]) or ""
    heads = "Args|Returns|Raises|Attributes|Examples?|Notes?|Parameters"
    assert not re.search(rf"^({heads}):\s*$", text, re.MULTILINE)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "curvote.InternalError"])
def test_parameters_are_described_as_they_are_called(name: str) -> None:
    """Each of the signature, and no other; who has a default says it."""
    thing = NAMES[name]
    known = inspect.signature(thing).parameters
    section = sections(thing).get("Parameters", "")
    assert described(section) == set(known)
    stated = [line for line in section.splitlines() if ", default=" in line]
    left_out = {k for k, v in known.items() if v.default is not v.empty}
    assert described("\n".join(stated)) >= left_out


@pytest.mark.parametrize("name", [n for n in ESTIMATORS if n not in OF_FORM])
def test_what_a_fit_leaves_is_described(name: str) -> None:
    """Each public attribute, and no other."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (200, 3))
    y = (x[:, 0] > 0).astype(int)
    model = NAMES[name](random_state=0, **FIT.get(name, {})).fit(x, y)
    left = {key for key in vars(model) if re.fullmatch(r"[a-z]\w*_", key)}
    told = described(sections(NAMES[name])["Attributes"])
    assert left <= told
    assert told - left <= {"feature_names_in_"}
