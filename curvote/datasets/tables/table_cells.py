"""The text cells of a table: how they are read, and every violation with its line."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from curvote.datasets.tables.contract import Broken, Rule
from curvote.datasets.tables.features import Feature
from curvote.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

EXAMPLES = 10
LONGEST = 40
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"

Record = tuple[int, list[str]]  # the line on which a row ends, its fields
Range = tuple[float, float]


def records(data: bytes, separator: str) -> list[Record]:
    """Return the rows of ``data`` with their line numbers, empty last lines left out.

    Raises:
        UserError: no UTF-8, a quotation without end, or no row.
    """
    text = io.StringIO(_text(data), newline="")
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
            f"its header is one field, {_shown(names[0])}; fields are separated by"
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
            f"rows without {n} fields separated by {separator!r}: {_listed(wrong)}."
        )


def coded(
    cells: pd.Series[str], feature: Feature, marks: Collection[str]
) -> pd.Series[float]:
    """Return numbers: what is written, or the category's code; NaN for any other."""
    if feature.categories:
        codes = {text: float(code) for code, text in enumerate(feature.categories)}
        return cells.map(codes).astype("float64")
    numbers = cells.where(_written(cells) & ~cells.isin(list(marks)))
    return numbers.map(float).astype("float64")


def rules(
    feature: Feature, marks: Collection[str], possible: Range | None
) -> dict[str, Rule]:
    """Return what each cell of ``feature`` must fulfil, by the words that deny it."""
    if feature.categories:
        return one_of(feature.categories, marks)

    def values(cells: pd.Series[str]) -> pd.Series[float]:
        return coded(cells, feature, marks)

    found: dict[str, Rule] = {
        "not a number": lambda cells: _written(cells) | cells.isin(list(marks)),
        _beyond(possible): lambda cells: _possible(values(cells), feature, possible),
    }
    if feature.whole:
        found["not a whole number"] = lambda cells: _whole(values(cells))
    return found


def one_of(known: Collection[str], marks: Collection[str] = ()) -> dict[str, Rule]:
    """Return the rule that a cell is a ``known`` text or one that means missing."""
    accepted = [*known, *marks]
    return {f"not one of {', '.join(known)}": lambda cells: cells.isin(accepted)}


def explain(found: Iterable[Broken]) -> str:
    """Return what is broken: a line a kind, with count, lines and examples."""
    kinds: dict[str, list[str]] = {}
    for each in found:
        kind, example = _kind(each)
        kinds.setdefault(kind, []).append(example)
    lines = [f"- {kind}: {_listed(examples)}" for kind, examples in kinds.items()]
    return "\n".join(["wrong table:", *lines])


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"line {line} is no UTF-8 text: {error.reason}.") from error


def _written(cells: pd.Series[str]) -> pd.Series[bool]:
    return cells.str.fullmatch(_NUMBER)


def _whole(values: pd.Series[float]) -> pd.Series[bool]:
    return values.isna() | np.isinf(values) | (values % 1 == 0)


def _possible(
    values: pd.Series[float], feature: Feature, possible: Range | None
) -> pd.Series[bool]:
    absent = values.isna() | values.isin(feature.missing)
    inside = values.between(*possible) if possible else np.isfinite(values)
    return absent | inside


def _beyond(possible: Range | None) -> str:
    if possible is None:
        return "infinite"
    return "impossible (outside {:g} to {:g})".format(*possible)


def _kind(each: Broken) -> tuple[str, str]:
    if each.line is None:
        return each.rule, str(each.column)
    shown = _shown(str(each.value))
    return f"{each.column}, {each.rule}", f"line {each.line} {shown}"


def _listed(examples: Sequence[str]) -> str:
    more = len(examples) - EXAMPLES
    tail = f", and {more} more" if more > 0 else ""
    return f"{len(examples)} ({', '.join(examples[:EXAMPLES])}{tail})"


def _shown(text: str) -> str:
    return repr(text if len(text) <= LONGEST else f"{text[:LONGEST]}...")
