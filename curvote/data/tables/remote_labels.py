"""Public table whose labels stay with their owners and arrive as coded envelopes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from curvote.base import table_file
from curvote.base.classes import Classes
from curvote.base.table_file import Problems
from curvote.base.text import normalise_id
from curvote.base.validate import FloatArray
from curvote.chain.settings import Strict
from curvote.data import columns as frames
from curvote.data.columns import ClientColumns, Feature, Paths
from curvote.data.tables.remote_table import Word, distinct_names
from curvote.data.tables.schema import Text

SIMULATED = False
USER_FILE = True  # the file is the user's: no publisher, no entry in sources.toml
REMOTE = True  # the labels are elsewhere
LONGEST = 60  # of a record's name
NOBODY = -1  # the label of a record, as far as is known here
Categories = dict[Word, Annotated[tuple[Word, ...], distinct_names(2)]]


class Parameters(Strict):
    """Settings of ``source:``: public file, columns and classes.

    ``record`` is the column with the records' public names, ``features`` are those with
    numbers, or with texts of which ``categories`` lists all. A missing number stands
    for the mean of its column, a missing text for none of its categories.
    """

    name: Literal["remote_labels"] = "remote_labels"
    path: Text
    record: Word
    features: Annotated[tuple[Word, ...], distinct_names(1)]
    categories: Categories = Field(default_factory=dict)
    classes: Annotated[tuple[Word, ...], distinct_names(2)]

    @field_validator("features")
    @classmethod
    def _check_columns(
        cls, names: tuple[str, ...], info: ValidationInfo
    ) -> tuple[str, ...]:
        if info.data.get("record") in names:
            raise PydanticCustomError("record", "a record's name is no feature")
        return names

    @field_validator("categories")
    @classmethod
    def _check_categories(
        cls, categories: dict[str, Any], info: ValidationInfo
    ) -> dict[str, Any]:
        features = info.data.get("features", ())
        strange = [name for name in categories if name not in features]
        if strange:
            message = f"categories of what is no feature: {', '.join(strange)}"
            raise PydanticCustomError("categories", message)
        return categories


files, size = frames.user_file_key, frames.no_size


def width(parameters: Parameters) -> int:
    """Return how many numbers a record has: one for each category of a text."""
    sizes = (len(parameters.categories.get(x, (x,))) for x in parameters.features)
    return sum(sizes)


def classes(parameters: Parameters) -> Classes:
    """Return the classes in the pipeline's order."""
    return Classes(parameters.classes)


def facts(parameters: Parameters, paths: Paths) -> dict[str, Any]:
    """Return the public metadata of the file's records.

    Raises:
        UserError: everything that is wrong with the file, at once, with lines.
    """
    names, values = load_records(parameters, paths["path"])
    features = [*_feature_metadata(parameters, values)]
    return {
        "title": f"Public records of {paths['path'].name}",
        "grid": list(range(len(features))),
        "domain": [0, len(features) - 1],
        "unit": "feature",
        "classes": list(parameters.classes),
        "features": [feature.to_json() for feature in features],
        "categories": {x: list(texts) for x, texts in parameters.categories.items()},
        "rows": len(names),
        "counts": {},
        "simulated": False,
        "notes": ["No label is here: codes of them come by envelope."],
    }


def clients(parameters: Parameters, paths: Paths) -> ClientColumns:
    """Return the columns of the public records, without labels.

    Raises:
        UserError: everything that is wrong with the file, at once, with lines.
    """
    names, values = load_records(parameters, paths["path"])
    columns = frames.client_columns(values, np.full(len(names), NOBODY))
    return columns | {"record": np.array(names, dtype=object)}


def load_records(parameters: Parameters, path: Path) -> tuple[list[str], FloatArray]:
    """Return the names (n,) and the numbers (n, p) of the records in a file.

    Raises:
        UserError: every problem, with lines: a column that is not there or stands
            twice, no row, a name that is empty, too long or stands twice, a cell that
            is no number, a text that is none of its categories.
    """
    frame, problems = table_file.read_table(path), Problems(path)
    if not len(frame):
        problems.add("it has no row")
    if table_file.note_missing_columns(
        frame, [parameters.record, *parameters.features], problems
    ):
        problems.check()
    names = _record_names(frame, parameters.record, problems)
    columns = []
    for name in parameters.features:
        if texts := parameters.categories.get(name):
            indicators = table_file.read_indicators(frame, name, texts, problems)
            columns.append(indicators)
        else:
            columns.append(_number_column(frame, name, problems))
    problems.check()
    return names, np.column_stack(columns)


def _record_names(frame: Any, column: str, problems: Problems) -> list[str]:
    names = [*map(normalise_id, table_file.read_texts(frame, column, problems))]
    odd = np.array([len(x) > LONGEST or not x.isprintable() for x in names], dtype=bool)
    what = f"{column}: no plain text of at most {LONGEST} characters"
    problems.add_rows(frame, odd, what)
    seen_names: set[str] = {""}
    again = np.zeros(len(names), dtype=bool)
    for row, name in enumerate(names):
        again[row] = name in seen_names and name != ""
        seen_names.add(name)
    problems.add_rows(frame, again, f"{column}: a record that stood there before")
    return names


def _number_column(frame: Any, name: str, problems: Problems) -> FloatArray:
    """Return a column of numbers; the public mean of the others where one is absent."""
    absent = table_file.missing_cells(frame, name)
    filled = frame[[name]].astype(object).mask(absent[:, None], 0)
    values = table_file.read_numbers(filled, [name], problems)[:, 0]
    if absent.all():
        problems.add(f"{name}: every value is missing")
        return values
    return np.where(absent, values[~absent].mean(), values)


def _feature_metadata(parameters: Parameters, values: FloatArray) -> Iterator[Feature]:
    """Yield the metadata of each number, with the public file's bounds."""
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
                column_name = table_file.indicator_name(name, text)
                yield Feature(column_name, "0 or 1", 0, 1, "stated by the user")
