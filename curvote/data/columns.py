"""Columns of data sets: client tables, bounds of features, class lists."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from curvote.base.errors import InternalError, UserError
from curvote.data.raw_files import Source

if TYPE_CHECKING:
    import pandas as pd


Paths = Mapping[str, Path]  # of raw files, by name
ClientColumns = dict[str, NDArray[Any]]  # client_id, label, group, curve, and more
Facts = dict[str, Any]  # public metadata as plain JSON values
Points = Annotated[int, Field(ge=2, strict=True)]
# Who tests comes from the publisher's test part, everybody else from its other one.
Split = Literal["published"]


def no_files(_parameters: Any) -> tuple[str, ...]:
    """Return no names: the data set has no raw file."""
    return ()


def user_file_key(_parameters: Any) -> tuple[str, ...]:
    """Return the key of ``paths`` that holds the user's file."""
    return ("path",)


def no_size(_parameters: Any) -> int | None:
    """Return None: nobody published how many clients there are."""
    return None


def grid_points(parameters: Any) -> int:
    """Return the number of grid points of a curve."""
    return int(parameters.points)


class Simulation:
    """A data set without a file: nothing to fetch, check or fingerprint."""

    SIMULATED = True
    files = staticmethod(no_files)
    size = staticmethod(no_size)
    width = staticmethod(grid_points)


def client_columns(
    curve: NDArray[Any],
    label: NDArray[np.int64],
    client_id: NDArray[np.int64] | None = None,
    group: NDArray[np.int64] | None = None,
    **more: NDArray[Any] | None,
) -> ClientColumns:
    """Return client_id, label, group (n,) and curve (n, T) as one table.

    Ids and groups that are not given are 0 to n - 1. ``more`` are columns that only
    some sources have: None leaves one out.
    """
    rows = np.arange(len(label))
    return {
        "client_id": rows if client_id is None else client_id,
        "label": label,
        "group": rows if group is None else group,
        "curve": curve,
        **{name: column for name, column in more.items() if column is not None},
    }


def part_sizes(tested: NDArray[np.int64] | None) -> dict[str, dict[str, int]]:
    """Return how many records train and test as metadata ``parts``."""
    if tested is None:
        return {}
    test = int(tested.sum())
    return {"parts": {"train": len(tested) - test, "test": test}}


def join_pieces(pieces: Iterable[ClientColumns]) -> ClientColumns:
    """Return the pieces of a table as one: for files that fit into memory."""
    parts = list(pieces)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def class_counts(labels: NDArray[np.int64], classes: Sequence[str]) -> list[int]:
    """Return the number of labels (n,) of each class."""
    return [int(n) for n in np.bincount(labels, minlength=len(classes))]


def facts(
    counts: Sequence[int], classes: Sequence[str], **extra: Any
) -> dict[str, Any]:
    """Return the public metadata of a file: class ``counts``, and the ``extra``."""
    return extra | {
        "classes": list(classes),
        "rows": sum(counts),
        "counts": dict(zip(classes, counts, strict=True)),
        "simulated": False,
    }


def check_rows(n: int, source: Source) -> None:
    """Raise a UserError unless there are as many rows as published."""
    if n != source.rows:
        raise UserError(f"wrong counts: {n} rows instead of {source.rows}.")


ALL = "all"


def all_classes(names: tuple[Any, ...]) -> BeforeValidator:
    """Return the validator that takes the word `all` for all class names."""
    literal: Any = Literal.__getitem__(names)
    form = list[literal] | Literal["all"]  # what an editor offers
    return BeforeValidator(lambda value: names if value == ALL else value, form)


def _refuse_all(value: Any) -> Any:
    """Return the list; refuse the word `all` where no list is published."""
    if value == ALL:
        message = (
            "list the names: nobody published them, and a list that is taken from"
            " private records is not public"
        )
        raise PydanticCustomError("private", message)
    return value


def _check_distinct(classes: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(classes) < 2:
        raise PydanticCustomError("few", "name two or more")
    if len({*classes}) < len(classes):
        raise PydanticCustomError("repeated", "name each class once")
    return classes


# Of records that nobody published, the word `all` says nothing.
EXPLICIT_CLASSES = BeforeValidator(_refuse_all)
DISTINCT_CLASSES = AfterValidator(_check_distinct)


def check_one_way(parameters: Any, *short: str) -> None:
    """Refuse a list of classes beside the ``short`` form of two classes."""
    stated_fields = parameters.model_fields_set & {*short}
    beside = any(getattr(parameters, name) is not None for name in stated_fields)
    if parameters.classes is not None and beside:
        message = f"give classes, or {' and '.join(short)}"
        raise PydanticCustomError("both", message)


@dataclass(frozen=True)
class Feature:
    """One feature of a table, with bounds that are known without any record.

    ``why`` names the source of the bounds: domain knowledge, never the data.
    ``centre`` is public, too (default: the midpoint of the bounds). ``missing`` are
    numbers that mean "missing", beside the table's text marks. ``categories`` are
    coded 0..k-1 in alphabetical order. ``integral`` allows whole numbers only.
    """

    name: str
    unit: str
    lower: float
    upper: float
    why: str
    centre: float | None = None
    missing: tuple[float, ...] = ()
    categories: tuple[str, ...] = ()
    integral: bool = False

    def __post_init__(self) -> None:
        ordered = -math.inf < self.lower < self.upper < math.inf
        if not ordered or not self.lower <= self.middle <= self.upper:
            raise InternalError(f"the bounds of feature {self.name} are not in order.")
        if self.categories not in {(), tuple(sorted({*self.categories}))}:
            raise InternalError(f"the categories of {self.name} are not in order.")

    @property
    def middle(self) -> float:
        """Return the public centre: the one stated, else the midpoint."""
        return (self.lower + self.upper) / 2 if self.centre is None else self.centre

    def to_json(self) -> dict[str, Any]:
        """Return name, unit, lower, upper, centre and why as plain JSON values."""
        return {
            "name": self.name,
            "unit": self.unit,
            "lower": float(self.lower),
            "upper": float(self.upper),
            "centre": float(self.middle),
            "why": self.why,
        }


def category_feature(name: str, categories: Collection[str], why: str) -> Feature:
    """Return a feature of text ``categories``, coded 0..k-1 in alphabetical order."""
    texts = tuple(sorted(categories))
    codes = ", ".join(f"{code} = {text}" for code, text in enumerate(texts))
    top = len(texts) - 1
    return Feature(name, f"code: {codes}", 0, top, why, categories=texts)


def indicator_features(feature: Feature) -> tuple[Feature, ...]:
    """Return one feature of values 0 and 1 for each category of ``feature``."""
    return tuple(
        Feature(f"{feature.name} = {text}", "0 or 1", 0, 1, feature.why, integral=True)
        for text in feature.categories
    )


# Says of each cell of a column whether it may stand there.
Rule = Callable[[Any], Any]
MISSING = "columns that are missing"
UNEXPECTED = "columns that are not expected"


@dataclass(frozen=True)
class Violation:
    """A violated rule of a cell or, without a ``line``, of a column."""

    rule: str
    column: str
    line: int | None = None
    value: Any = None


def find_violations(
    frame: pd.DataFrame,
    rules: Mapping[str, Mapping[str, Rule]],
    ignored: Collection[str] = (),
) -> list[Violation]:
    """Return the violations of the columns' ``rules``, by line, columns last.

    A line is the row's index. Columns beside those of ``rules`` and ``ignored`` are not
    expected.
    """
    wanted = [*rules, *ignored]
    strange = [Violation(UNEXPECTED, str(name)) for name in frame if name not in wanted]
    missing = [Violation(MISSING, name) for name in wanted if name not in frame]
    violations = []
    for name in (name for name in rules if name in frame):
        cells = frame[name]
        for rule, holds in rules[name].items():
            wrong = cells[~holds(cells).astype(bool)].items()
            violations += [Violation(rule, name, int(str(at)), x) for at, x in wrong]
    violations.sort(key=lambda violation: violation.line or 0)
    return [*violations, *strange, *missing]


EXAMPLES = 10
LONGEST = 40
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"

Record = tuple[int, list[str]]  # the line on which a row ends, its fields
Range = tuple[float, float]


def parse_records(data: bytes, separator: str) -> list[Record]:
    """Return the rows of ``data`` with their line numbers, empty last lines left out.

    Raises:
        UserError: no UTF-8, a quotation without end, or no row.
    """
    text = io.StringIO(_decode(data), newline="")
    reader = csv.reader(text, delimiter=separator, strict=True)
    try:
        rows = [(reader.line_num, fields) for fields in reader]
    except csv.Error as error:
        raise UserError(f"line {reader.line_num}: {error}.") from error
    while rows and not rows[-1][1]:
        rows.pop()
    if not rows:
        raise UserError("it has no row.")
    return rows


def check_names(names: Sequence[str], separator: str) -> None:
    """Raise a UserError if a header has one field only, or one name twice."""
    if len(names) == 1:
        raise UserError(
            f"its header is one field, {_quote(names[0])}; fields are separated by"
            f" {separator!r}."
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UserError(f"its header has more than one column {', '.join(twice)}.")


def check_lengths(rows: Iterable[Record], n: int, separator: str) -> None:
    """Raise a UserError that lists the rows without exactly ``n`` fields."""
    lengths = [(line, len(fields)) for line, fields in rows]
    wrong = [f"line {line} has {length}" for line, length in lengths if length != n]
    if wrong:
        raise UserError(
            f"rows without {n} fields separated by {separator!r}:"
            f" {_join_examples(wrong)}."
        )


def encode_cells(
    cells: pd.Series[str], feature: Feature, marks: Collection[str]
) -> pd.Series[float]:
    """Return the numbers or category codes of cells, NaN for any other text."""
    if feature.categories:
        codes = {text: float(code) for code, text in enumerate(feature.categories)}
        return cells.map(codes).astype("float64")
    numbers = cells.where(_is_written(cells) & ~cells.isin(list(marks)))
    return numbers.map(float).astype("float64")


def cell_rules(
    feature: Feature, marks: Collection[str], possible: Range | None
) -> dict[str, Rule]:
    """Return the rules of a feature's cells, by the words that deny them."""
    if feature.categories:
        return one_of_rule(feature.categories, marks)

    def is_possible(cells: pd.Series[str]) -> pd.Series[bool]:
        values = encode_cells(cells, feature, marks)
        absent = values.isna() | values.isin(feature.missing)
        inside = values.between(*possible) if possible else np.isfinite(values)
        return absent | inside

    def is_integral(cells: pd.Series[str]) -> pd.Series[bool]:
        values = encode_cells(cells, feature, marks)
        return values.isna() | np.isinf(values) | (values % 1 == 0)

    outside = "impossible (outside {:g} to {:g})".format(*possible) if possible else ""
    checks: dict[str, Rule] = {
        "not a number": lambda cells: _is_written(cells) | cells.isin(list(marks)),
        outside or "infinite": is_possible,
    }
    return checks | ({"not a whole number": is_integral} if feature.integral else {})


def one_of_rule(
    allowed: Collection[str], marks: Collection[str] = ()
) -> dict[str, Rule]:
    """Return the rule that a cell is an ``allowed`` text or a missing mark."""
    accepted = [*allowed, *marks]
    return {f"not one of {', '.join(allowed)}": lambda cells: cells.isin(accepted)}


def format_violations(violations: Iterable[Violation]) -> str:
    """Return the violations as text: a line a kind, with examples."""
    kinds: dict[str, list[str]] = {}
    for violation in violations:
        kind, example = violation.rule, str(violation.column)
        if violation.line is not None:
            kind = f"{violation.column}, {violation.rule}"
            example = f"line {violation.line} {_quote(str(violation.value))}"
        kinds.setdefault(kind, []).append(example)
    lines = [f"- {kind}: {_join_examples(some)}" for kind, some in kinds.items()]
    return "\n".join(["wrong table:", *lines])


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"line {line} is no UTF-8 text: {error.reason}.") from error


def _is_written(cells: pd.Series[str]) -> pd.Series[bool]:
    return cells.str.fullmatch(_NUMBER)


def _join_examples(examples: Sequence[str]) -> str:
    more = len(examples) - EXAMPLES
    tail = f", and {more} more" if more > 0 else ""
    return f"{len(examples)} ({', '.join(examples[:EXAMPLES])}{tail})"


def _quote(text: str) -> str:
    return repr(text if len(text) <= LONGEST else f"{text[:LONGEST]}...")
