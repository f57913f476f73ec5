"""Records that stay with their owners: sources of public metadata only.

`CURVES` and `TABLE` are elsewhere as a whole; of the public table of `LABELS` only the
labels are, which arrive as coded envelopes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pydantic
from numpy.random import Generator
from pydantic_core import PydanticCustomError

from curvote.base import table_file
from curvote.base.classes import Classes
from curvote.base.table_file import Column, Violations
from curvote.base.text import normalise_id
from curvote.base.validate import FloatArray
from curvote.chain.settings import Strict
from curvote.data import columns
from curvote.data.columns import ClientColumns, Facts, Feature, Paths, Points, Text

LONGEST = 60  # of a name
NOBODY = -1  # the label of a record, as far as is known here
_SERVER = re.compile("[A-Za-z0-9][A-Za-z0-9_-]*")


def _check_text(value: object) -> object:
    if isinstance(value, bool):
        words = str(value).lower()
        raise PydanticCustomError("quotes", f"put {words} in quotes to make it a text")
    if isinstance(value, int | float):
        raise PydanticCustomError("quotes", f'put {value} in quotes: "{value}"')
    return value


def distinct_names(minimum: int) -> pydantic.AfterValidator:
    """Return the validator of a list of ``minimum`` or more distinct names."""

    def check_names(names: tuple[str, ...]) -> tuple[str, ...]:
        if len(names) < minimum:
            raise PydanticCustomError("few", f"give {minimum} or more")
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise PydanticCustomError("repeated", f"{', '.join(twice)} stands twice")
        return names

    return pydantic.AfterValidator(check_names)


def _check_word(text: str) -> str:
    if not text.isprintable() or text != text.strip() or not 0 < len(text) <= LONGEST:
        message = f"{text!r} is no text of 1 to {LONGEST} characters without margins"
        raise PydanticCustomError("word", message)
    return text


def _check_server_name(text: str) -> str:
    if not _SERVER.fullmatch(text):
        message = f"{text!r}: use letters, digits, - and _ only, not - or _ first"
        raise PydanticCustomError("server", message)
    return text


Word = Annotated[
    str, pydantic.BeforeValidator(_check_text), pydantic.AfterValidator(_check_word)
]
Server = Annotated[Word, pydantic.AfterValidator(_check_server_name)]
Bounds = tuple[pydantic.FiniteFloat, pydantic.FiniteFloat]
Categories = dict[Word, Annotated[tuple[Word, ...], distinct_names(2)]]


class _Elsewhere(columns.Simulation):
    """Records that are elsewhere: envelopes bring what their owners release."""

    REMOTE = True

    def classes(self, parameters: Any) -> Classes:
        """Return the classes in the pipeline's order."""
        return Classes(parameters.classes)

    def facts(self, parameters: Any, paths: Any = None) -> Facts:
        classes = {"classes": list(self.classes(parameters)), "simulated": False}
        return super().facts(parameters, paths) | classes

    def clients(self, parameters: Any, _n: int, _generator: Generator) -> ClientColumns:
        """Return the columns of the table ``clients`` without rows."""
        records = np.empty((0, self.width(parameters)))
        return columns.client_columns(records, np.empty(0, dtype=np.int64))


class CurvesParameters(Strict, title="Parameters"):
    """Settings of ``source:``: grid and classes that all clients share."""

    name: Literal["remote"] = "remote"
    points: Points
    domain: tuple[pydantic.FiniteFloat, pydantic.FiniteFloat] = (0.0, 1.0)
    unit: str = "time"
    channels: Annotated[tuple[Word, ...], distinct_names(0)] = ()
    irregular: Literal["smooth"] | None = None
    negative: str | None = None
    positive: str | None = None
    classes: (
        Annotated[tuple[str, ...], columns.EXPLICIT_CLASSES, columns.DISTINCT_CLASSES]
        | None
    ) = None

    @pydantic.field_validator("domain")
    @classmethod
    def _check_domain(cls, domain: tuple[float, float]) -> tuple[float, float]:
        if not domain[0] < domain[1]:
            raise PydanticCustomError("order", "its ends must increase")
        return domain

    @pydantic.model_validator(mode="after")
    def _check_one_way(self) -> CurvesParameters:
        columns.check_one_way(self, "positive", "negative")
        if self.classes is None and None in {self.negative, self.positive}:
            message = "name the classes, or negative and positive"
            raise PydanticCustomError("missing", message)
        if self.positive is not None and self.positive == self.negative:
            raise PydanticCustomError("same", "positive must differ from negative")
        return self


class _Curves(_Elsewhere):
    Parameters = CurvesParameters

    def width(self, parameters: CurvesParameters) -> int:
        """Return how many values a curve has by the pipeline, on all channels."""
        return parameters.points * (len(parameters.channels) or 1)

    def classes(self, parameters: CurvesParameters) -> Classes:
        """Return the classes in the pipeline's order, negative before positive."""
        two = parameters.negative or "", parameters.positive or ""
        return Classes(parameters.classes or two)

    def about(self, parameters: CurvesParameters) -> Facts:
        return columns.form_of_curves(parameters) | {
            "title": "Curves that stay with their owners",
            "grid": np.linspace(*parameters.domain, parameters.points).tolist(),
            "domain": list(parameters.domain),
            "unit": parameters.unit,
            "notes": ["No curve is here: messages come by envelope."],
        }


class TableParameters(Strict, title="Parameters"):
    """Settings of ``source:``: servers, bounded features, classes."""

    name: Literal["remote_table"] = "remote_table"
    servers: Annotated[tuple[Server, ...], distinct_names(1)]
    features: Annotated[dict[Word, Bounds], pydantic.Field(min_length=1)]
    classes: Annotated[tuple[Word, ...], distinct_names(2)]
    record: Word = "record"

    @pydantic.field_validator("features")
    @classmethod
    def _check_bounds(cls, features: dict[str, Bounds]) -> dict[str, Bounds]:
        wrong = [name for name, (low, high) in features.items() if not low < high]
        if wrong:
            message = f"the first bound must be below the second: {', '.join(wrong)}"
            raise PydanticCustomError("order", message)
        return features


class _Table(_Elsewhere):
    Parameters = TableParameters

    def width(self, parameters: TableParameters) -> int:
        """Return how many features a record has by the pipeline."""
        return len(parameters.features)

    def servers(self, parameters: TableParameters) -> dict[str, None]:
        """Return the servers; their releases say how many records each has."""
        return dict.fromkeys(parameters.servers)

    def about(self, parameters: TableParameters) -> Facts:
        why, bounds = "stated by the user", parameters.features.items()
        return {
            "title": "Tables that stay with their servers",
            **columns.feature_facts([Feature(x, "", *ends, why) for x, ends in bounds]),
            "servers": self.servers(parameters),
            "record": parameters.record,
            "notes": ["No record is here: each server sends what it releases."],
        }


class LabelsParameters(Strict, title="Parameters"):
    """Settings of ``source:``: public file, columns and classes."""

    name: Literal["remote_labels"] = "remote_labels"
    path: Text
    record: Word
    features: Annotated[tuple[Word, ...], distinct_names(1)]
    categories: Categories = pydantic.Field(default_factory=dict)
    classes: Annotated[tuple[Word, ...], distinct_names(2)]
    private: Categories = pydantic.Field(default_factory=dict)

    @pydantic.field_validator("private")
    @classmethod
    def _check_private(
        cls, private: dict[str, Any], info: pydantic.ValidationInfo
    ) -> dict[str, Any]:
        if {*info.data.get("features", ()), info.data.get("record")} & {*private}:
            message = "a private column is not in the file, nor a public one"
            raise PydanticCustomError("private", message)
        return private

    @pydantic.field_validator("features")
    @classmethod
    def _check_columns(
        cls, names: tuple[str, ...], info: pydantic.ValidationInfo
    ) -> tuple[str, ...]:
        if info.data.get("record") in names:
            raise PydanticCustomError("record", "a record's name is no feature")
        return names

    @pydantic.field_validator("categories")
    @classmethod
    def _check_categories(
        cls, categories: dict[str, Any], info: pydantic.ValidationInfo
    ) -> dict[str, Any]:
        features = info.data.get("features", ())
        strange = [name for name in categories if name not in features]
        if strange:
            message = f"categories of what is no feature: {', '.join(strange)}"
            raise PydanticCustomError("categories", message)
        return categories


class _Labels:
    SIMULATED, USER_FILE = False, True
    REMOTE = True  # the labels are
    Parameters = LabelsParameters
    files = staticmethod(columns.always(("path",)))
    size = staticmethod(columns.always(None))

    def width(self, parameters: LabelsParameters) -> int:
        """Return how many numbers a record has: one for each category of a text."""
        sizes = (len(parameters.categories.get(x, (x,))) for x in parameters.features)
        return sum((*sizes, *map(len, parameters.private.values())))

    def classes(self, parameters: LabelsParameters) -> Classes:
        """Return the classes in the pipeline's order."""
        return Classes(parameters.classes)

    def facts(self, parameters: LabelsParameters, paths: Paths) -> Facts:
        """Return the public metadata of the file's records.

        Raises:
            UserError: everything that is wrong with the file, at once, with lines.
        """
        names, values = load_records(parameters, paths["path"])
        texts = (parameters.categories | parameters.private).items()
        return {
            "title": f"Public records of {paths['path'].name}",
            **columns.feature_facts([*_number_features(parameters, values)]),
            "classes": list(parameters.classes),
            **({"private": [*parameters.private]} if parameters.private else {}),
            "categories": {name: list(categories) for name, categories in texts},
            "rows": len(names),
            "counts": {},
            "simulated": False,
            "notes": ["No label is here: codes of them come by envelope."],
        }

    def clients(self, parameters: LabelsParameters, paths: Paths) -> ClientColumns:
        """Return the columns of the public records, without labels.

        Raises:
            UserError: everything that is wrong with the file, at once, with lines.
        """
        names, values = load_records(parameters, paths["path"])
        table = columns.client_columns(values, np.full(len(names), NOBODY))
        return table | {"record": np.array(names, dtype=object)}


def load_records(
    parameters: LabelsParameters, path: Path
) -> tuple[list[str], FloatArray]:
    """Return the names (n,) and the numbers (n, p) of the records in a file.

    Raises:
        UserError: every problem, with lines: a column that is not there or stands
            twice, no row, a name that is empty, too long or stands twice, a cell that
            is no number, a text that is none of its categories.
    """
    table, violations = table_file.read_cells(path), Violations(path)
    if not len(table):
        violations.note("it has no row")
    wanted = [parameters.record, *parameters.features]
    if violations.note_columns(table.columns, wanted):
        violations.check()
    texts = table_file.read_texts(table, parameters.record, violations)
    names = [*map(normalise_id, texts)]
    odd = np.array([len(x) > LONGEST or not x.isprintable() for x in names], dtype=bool)
    what = f"{parameters.record}: no plain text of at most {LONGEST} characters"
    violations.note_rows(table, odd, what)
    what = f"{parameters.record}: a record that stood there before"
    violations.note_rows(table, table_file.repeated_texts(names), what)
    parts = []
    for name in parameters.features:
        categories = parameters.categories.get(name)
        column = Column(name, categories, table_file.MISSING)
        values = table_file.read_column(table, column, violations)
        if categories:
            parts.append(values[:, np.newaxis] == np.arange(len(categories)))
            continue
        if all(table_file.cell_text(x) in table_file.MISSING for x in table[name]):
            violations.note(f"{name}: every value is missing")
        elif not violations:
            absent = np.isnan(values)
            values = np.where(absent, values[~absent].mean(), values)
        parts.append(values[:, np.newaxis])
    violations.check()
    # Columns that stay with people: nobody's category is known here.
    parts += [np.zeros((len(names), len(x))) for x in parameters.private.values()]
    return names, np.hstack(parts).astype(np.float64)


def _number_features(
    parameters: LabelsParameters, values: FloatArray
) -> Iterator[Feature]:
    """Yield each number as a feature, with the public file's bounds."""
    numbers, texts = iter(values.T), parameters.categories | parameters.private
    for name in [*parameters.features, *parameters.private]:
        for text in texts.get(name, ()):
            next(numbers)
            column = table_file.indicator_name(name, text)
            yield Feature(column, "0 or 1", 0, 1, "stated by the user")
        if name not in texts:
            number = next(numbers)
            low, high = float(number.min()), float(number.max())
            ends = low, max(high, np.nextafter(low, np.inf))
            yield Feature(name, "", *ends, "the public file")


CURVES = _Curves()
TABLE = _Table()
LABELS = _Labels()
