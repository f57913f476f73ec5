"""Text cells of a table: parsing, category codes, and violations with their lines."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from curvote.datasets.tables.contract import Rule, Violation
from curvote.datasets.tables.features import Feature
from curvote.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

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

    def parse_numbers(cells: pd.Series[str]) -> pd.Series[float]:
        return encode_cells(cells, feature, marks)

    checks: dict[str, Rule] = {
        "not a number": lambda cells: _is_written(cells) | cells.isin(list(marks)),
        _out_of_range_text(possible): lambda cells: _is_possible(
            parse_numbers(cells), feature, possible
        ),
    }
    if feature.integral:
        checks["not a whole number"] = lambda cells: _is_integral(parse_numbers(cells))
    return checks


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
        kind, example = _violation_kind(violation)
        kinds.setdefault(kind, []).append(example)
    lines = [
        f"- {kind}: {_join_examples(examples)}" for kind, examples in kinds.items()
    ]
    return "\n".join(["wrong table:", *lines])


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"line {line} is no UTF-8 text: {error.reason}.") from error


def _is_written(cells: pd.Series[str]) -> pd.Series[bool]:
    return cells.str.fullmatch(_NUMBER)


def _is_integral(values: pd.Series[float]) -> pd.Series[bool]:
    return values.isna() | np.isinf(values) | (values % 1 == 0)


def _is_possible(
    values: pd.Series[float], feature: Feature, possible: Range | None
) -> pd.Series[bool]:
    absent = values.isna() | values.isin(feature.missing)
    inside = values.between(*possible) if possible else np.isfinite(values)
    return absent | inside


def _out_of_range_text(possible: Range | None) -> str:
    if possible is None:
        return "infinite"
    return "impossible (outside {:g} to {:g})".format(*possible)


def _violation_kind(violation: Violation) -> tuple[str, str]:
    if violation.line is None:
        return violation.rule, str(violation.column)
    text = _quote(str(violation.value))
    return f"{violation.column}, {violation.rule}", f"line {violation.line} {text}"


def _join_examples(examples: Sequence[str]) -> str:
    more = len(examples) - EXAMPLES
    tail = f", and {more} more" if more > 0 else ""
    return f"{len(examples)} ({', '.join(examples[:EXAMPLES])}{tail})"


def _quote(text: str) -> str:
    return repr(text if len(text) <= LONGEST else f"{text[:LONGEST]}...")
