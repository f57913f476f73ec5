"""How many numbers a record has is known before any file is read, and is right."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from curvote.data import lookup, raw_files, registry
from tests import long_file, nhanes_files
from tests.real_files import needs_mirror

TABLE = {
    "path": "people.csv",
    "label": "ill",
    "positive": "yes",
    "features": ["age", "iron", "town"],
    "bounds": {"age": [0, 120], "iron": [0, 9], "town": [0, 1]},
}
REMOTE = {"points": 7, "negative": "no", "positive": "yes"}
TABLES = {"servers": ["a", "b"], "features": {"x": [0, 1]}, "classes": ["no", "yes"]}
LABELS = {
    "path": "people.csv",
    "record": "who",
    "features": ["age", "town"],
    "classes": ["no", "yes"],
}

# What a pipeline says about its source: what there is no default for, or what could
# change a record.
SAID: dict[str, list[dict[str, Any]]] = {
    "simulated": [{}, {"points": 7, "slope": [0, 8, -8]}],
    "uniform": [{}, {"d": 6}],
    "simulated_servers": [{}, {"points": 9}],
    "drifting": [{}, {"points": 11}],
    "posterior_drift": [{"n": 3}, {"total": 5, "m": 3, "test": 0}],
    "circle": [{}, {"n_classes": 3, "shares": "rank"}],
    "simulated-classes": [{}, {"n_classes": 3, "d": 12}],
    "phonemes": [
        {},
        {"classes": ["sh", "aa", "iy"]},
        {"positive": "aa", "negative": "rest"},
    ],
    "heart": [{}, {"hospitals": ["va"], "rule": "all", "missing": "drop"}],
    "stroke": [{}, {"missing": "drop"}],
    "churn": [{}],
    "diabetes": [{}, {"variant": "pima", "missing": "drop"}],
    "employee": [{}, {"encoding": "one_hot"}],
    "nhanes": [{}],
    "nhanes-2003": [{}, {"sex": "both"}, {"target": "hdl_mg_dl"}],
    "mnist": [{"part": "test"}],
    "fashion-mnist": [{}],
    "zip": [{}, {"classes": "all", "split": "published"}],
    "cifar-10": [{}],
    "cifar-100": [{}],
    "table": [TABLE, TABLE | {"id": "who", "missing": "drop"}],
    "curves": [long_file.GIVEN],
    "remote": [REMOTE],
    "remote_table": [TABLES],
    "remote_labels": [LABELS, LABELS | {"categories": {"town": ["0", "1"]}}],
}
CASES = [(name, said) for name, sayings in SAID.items() for said in sayings]
MODULES = {name: lookup.find_dataset(name) for name in registry.DATASETS}
OWN = [name for name, module in MODULES.items() if getattr(module, "USER_FILE", False)]
SIMULATED = [name for name, module in MODULES.items() if module.SIMULATED]
PUBLISHED = [name for name in MODULES if name not in {*OWN, *SIMULATED}]


def of(names: list[str]) -> Any:
    """Return the mark that runs a test with all that is said about ``names``."""
    chosen = [case for case in CASES if case[0] in names]
    return pytest.mark.parametrize(("name", "said"), chosen)


def width(name: str, said: dict[str, Any]) -> int | None:
    """Return the stated width of a source."""
    module = MODULES[name]
    stated: int | None = module.width(module.Parameters.model_validate(said))
    return stated


def found(name: str, said: dict[str, Any], *given: Any) -> int:
    """Return the width of the clients that there are."""
    module = MODULES[name]
    table = module.clients(module.Parameters.model_validate(said), *given)
    return int(table["curve"].shape[1])


def test_every_data_set_is_tried() -> None:
    """A new one needs a line here, too."""
    assert list(SAID) == list(registry.DATASETS)


@of(list(MODULES))
def test_the_width_is_stated_without_a_file(name, said, monkeypatch):
    """It is a positive whole number, or None; nothing is opened for it."""

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise AssertionError("a file was opened")

    monkeypatch.setattr("builtins.open", refuse)
    monkeypatch.setattr(Path, "open", refuse)
    stated = width(name, said)
    assert stated is None or (type(stated) is int and stated > 0)


@of(SIMULATED)
def test_it_is_that_of_simulated_clients(name: str, said: dict[str, Any]) -> None:
    """Whatever grid or d a pipeline asks for."""
    instance = [0] if lookup.drawn_per_server({"name": name} | said) else []
    given = (4, np.random.default_rng(1), *instance)
    assert width(name, said) in (None, found(name, said, *given))


@of(OWN)
def test_it_is_that_of_a_users_own_file(tmp_path, name, said):
    """The features that are named, the grid that is stated; not the file's columns."""
    path = long_file.write(long_file.frame(), tmp_path, "long.csv")
    if name != "curves":
        path = tmp_path / said["path"]
        columns = {"who": [1, 2, 3], "age": [30, 40, 50], "iron": [1, 2, None]}
        rest = {"town": [0, 1, 1], "unused": [5, 6, 7], "ill": ["yes", "no", "no"]}
        pd.DataFrame(columns | rest).to_csv(path, index=False)
    assert width(name, said) in (None, found(name, said, {"path": path}))


def test_it_is_that_of_the_hours_of_a_day(tmp_path: Path) -> None:
    """A small file in the layout of NHANES: the real one is rarely at hand."""
    hours = nhanes_files.week(101, np.random.default_rng(7))
    paths = nhanes_files.put(tmp_path, [(101.0, 2.0, 40.0, 55.0, 1.0)], hours)
    assert width("nhanes", {}) == found("nhanes", {}, paths)


@needs_mirror
@of(PUBLISHED)
def test_it_is_that_of_published_files(tmp_path, name, said):
    """Whatever classes, encoding or policies."""
    module = MODULES[name]
    names = module.files(module.Parameters.model_validate(said))
    files = {file: raw_files.locate(tmp_path, file, download=False) for file in names}
    if not all(files.values()):
        pytest.skip(f"the files of {name} are not here")
    paths = {file: located.path for file, located in files.items() if located}
    assert width(name, said) in (None, found(name, said, paths))
