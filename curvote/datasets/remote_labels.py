"""A public table whose labels stay with their owners: envelopes bring codes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from curvote import table_file
from curvote.chain.settings import Strict
from curvote.classes import Classes
from curvote.datasets import frames
from curvote.datasets.remote_table import Word, distinct
from curvote.datasets.tables.features import Feature
from curvote.identifier import normal
from curvote.table_file import Problems

SIMULATED = False
GIVEN = True  # the file is the user's: no publisher, no entry in sources.toml
REMOTE = True  # the labels are elsewhere
LONGEST = 60  # of a record's name
NOBODY = -1  # the label of a record, as far as is known here
Array = NDArray[np.float64]
Text = Annotated[str, Field(min_length=1)]
Categories = dict[Word, Annotated[tuple[Word, ...], distinct(2)]]


class Parameters(Strict):
    """What ``source:`` may say: the public file, its columns, and the classes.

    ``record`` is the column with the records' public names, ``features`` are those with
    numbers, or with texts of which ``categories`` lists all. A missing number stands
    for the mean of its column, a missing text for none of its categories.
    """

    name: Literal["remote_labels"] = "remote_labels"
    path: Text
    record: Word
    features: Annotated[tuple[Word, ...], distinct(1)]
    categories: Categories = Field(default_factory=dict)
    classes: Annotated[tuple[Word, ...], distinct(2)]

    @field_validator("features")
    @classmethod
    def _other(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if info.data.get("record") in names:
            raise PydanticCustomError("record", "a record's name is no feature")
        return names

    @field_validator("categories")
    @classmethod
    def _known(cls, given: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        strange = [name for name in given if name not in info.data.get("features", ())]
        if strange:
            said = f"categories of what is no feature: {', '.join(strange)}"
            raise PydanticCustomError("categories", said)
        return given


files, size = frames.own_file, frames.no_size


def width(parameters: Parameters) -> int:
    """Return how many numbers a record has: one for each category of a text."""
    each = (len(parameters.categories.get(x, (x,))) for x in parameters.features)
    return sum(each)


def classes(parameters: Parameters) -> Classes:
    """Return the classes in the pipeline's order."""
    return Classes(parameters.classes)


def facts(parameters: Parameters, paths: Mapping[str, Path]) -> dict[str, Any]:
    """Return what is public about the records, as plain JSON values; reads the file.

    Raises:
        UserError: everything that is wrong with the file, at once, with lines.
    """
    names, values = load(parameters, paths["path"])
    features = [*_features(parameters, values)]
    return {
        "title": f"Public records of {paths['path'].name}",
        "grid": list(range(len(features))),
        "domain": [0, len(features) - 1],
        "unit": "feature",
        "classes": list(parameters.classes),
        "features": [feature.to_json() for feature in features],
        "categories": {x: list(known) for x, known in parameters.categories.items()},
        "rows": len(names),
        "counts": {},
        "simulated": False,
        "notes": ["No label is here: codes of them come by envelope."],
    }


def clients(
    parameters: Parameters, paths: Mapping[str, Path]
) -> dict[str, NDArray[Any]]:
    """Return client_id, label, group, record (n,) and curve (n, p); no label is known.

    Raises:
        UserError: everything that is wrong with the file, at once, with lines.
    """
    names, values = load(parameters, paths["path"])
    known = frames.columns(values, np.full(len(names), NOBODY))
    return known | {"record": np.array(names, dtype=object)}


def load(parameters: Parameters, path: Path) -> tuple[list[str], Array]:
    """Return the names (n,) and the numbers (n, p) of the records in a file.

    Raises:
        UserError: every problem, with lines: a column that is not there or stands
            twice, no row, a name that is empty, too long or stands twice, a cell that
            is no number, a text that is none of its categories.
    """
    frame, problems = table_file.read(path), Problems(path)
    if not len(frame):
        problems.add("it has no row")
    if table_file.missing(frame, [parameters.record, *parameters.features], problems):
        problems.check()
    names = _names(frame, parameters.record, problems)
    columns = [*_columns(frame, parameters, problems)]
    problems.check()
    return names, np.column_stack(columns)


def _names(frame: Any, column: str, problems: Problems) -> list[str]:
    names = [normal(text) for text in table_file.texts(frame, column, problems)]
    odd = np.array([len(x) > LONGEST or not x.isprintable() for x in names], dtype=bool)
    what = f"{column}: no plain text of at most {LONGEST} characters"
    problems.at(frame, odd, what)
    seen: set[str] = {""}
    again = np.zeros(len(names), dtype=bool)
    for row, name in enumerate(names):
        again[row] = name in seen and name != ""
        seen.add(name)
    problems.at(frame, again, f"{column}: a record that stood there before")
    return names


def _columns(frame: Any, parameters: Parameters, problems: Problems) -> Iterator[Array]:
    """Yield the columns (n,) or (n, k) of the features, in their order."""
    for name in parameters.features:
        known = parameters.categories.get(name)
        if known is None:
            yield _numbers(frame, name, problems)
        else:
            yield table_file.choices(frame, name, known, problems)


def _numbers(frame: Any, name: str, problems: Problems) -> Array:
    """Return a column of numbers; the public mean of the others where one is absent."""
    absent = table_file.missing_in(frame, name)
    filled = frame[[name]].astype(object).mask(absent[:, None], 0)
    values = table_file.numbers(filled, [name], problems)[:, 0]
    if absent.all():
        problems.add(f"{name}: every value is missing")
        return values
    return np.where(absent, values[~absent].mean(), values)


def _features(parameters: Parameters, values: Array) -> Iterator[Feature]:
    """Yield what is said of each number; bounds are those of the public file."""
    place = 0
    for name in parameters.features:
        for text in parameters.categories.get(name, (None,)):
            column = values[:, place]
            place += 1
            if text is None:
                low, high = float(column.min()), float(column.max())
                why = "the public file"
                yield Feature(name, "", low, max(high, np.nextafter(low, np.inf)), why)
            else:
                column_name = table_file.category(name, text)
                yield Feature(column_name, "0 or 1", 0, 1, "stated by the user")
