"""Rows of a reproduction: selection, text for the terminal, CSV and JSON."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from importlib.resources import files
from typing import Any, ParamSpec

P = ParamSpec("P")
Row = dict[str, Any]

COLUMNS = (
    "pipeline",
    "setting",
    "protocol",
    "learner",
    "representation",
    "d",
    "epsilon",
    "method",
    "split",
    "group",
    "quantity",
    "n_classes",
    "published",
    "curvote",
    "corrected",
    "claimed",
    "bound",
    "se",
    "z",
)


def complete_rows(rows: Iterable[Row]) -> list[Row]:
    """Return the rows with all ``COLUMNS`` in order, None where absent."""
    return [{name: row.get(name) for name in COLUMNS} for row in rows]


def completed(make: Callable[P, Iterable[Row]]) -> Callable[P, list[Row]]:
    """Let a function that yields rows return all of them, complete."""
    return wraps(make)(lambda *args, **named: complete_rows(make(*args, **named)))


def column_as_ours(rows: Iterable[Row], name: str) -> list[Row]:
    """Return the rows with another column's values as curvote's, without error."""
    return [row | {"curvote": row[name], "se": None} for row in rows]


def percent(value: float | None) -> float | None:
    """Return a share in percent points."""
    return None if value is None else 100 * value


def select(rows: Iterable[Row], **values: Any) -> list[Row]:
    """Return the rows that hold these values, in their order."""
    return [row for row in rows if all(row[n] == v for n, v in values.items())]


def column_levels(rows: Iterable[Row], column: str = "epsilon") -> list[float | None]:
    """Return the distinct values of a column of numbers, ascending, None last."""
    values = {row[column] for row in rows}
    return [*sorted(values - {None}), *(values & {None})]


def distinct_values(rows: Iterable[Row], name: str) -> list[Any]:
    """Return the values of a column in the order in which they first appear."""
    values = dict.fromkeys(row[name] for row in rows)
    return [value for value in values if value is not None]


def with_error(row: Row) -> str:
    """Return "11.92 ± 0.10": the value and one standard error, where it is known."""
    error = "" if row["se"] is None else f" ± {row['se']:.2f}"
    return format_number(row, "curvote") + error


def format_number(row: Row, column: str) -> str:
    """Return a column as text: two decimals, four digits of a value by formula.

    Such a value, which has no standard error, may be small. What is not known is empty.
    """
    if row[column] is None:
        return ""
    by_formula = row["quantity"] == "value" and row["se"] is None
    return f"{row[column]:.4g}" if by_formula else f"{row[column]:.2f}"


def score_row(summary: Row, quantity: str = "misclassification") -> Row:
    """Return the row of one quantity of a summary of scores.

    ``summary`` as `curvote.pipeline.run.results.mean_scores` gives it. Where
    ``accuracy`` was not measured itself, it is what misclassification leaves.
    ``setting`` names the labels of a pipeline's grid.
    """
    inverted = quantity == "accuracy" and quantity not in summary
    name = "misclassification" if inverted else quantity
    error = "se" if name == summary["metric"] else f"{name}_se"
    value = percent(summary[name])
    if inverted and value is not None:
        value = 100 - value
    axes = summary.get("setting", {}).items()
    named = {name: summary.get(name) for name in COLUMNS}
    return named | {
        "setting": " ".join(f"{axis}={text}" for axis, text in axes) or None,
        "quantity": quantity,
        "curvote": value,
        "se": percent(summary.get(error)),
    }


def published_rows(paper: str, file: str) -> list[dict[str, str]]:
    """Return the lines of one file of printed numbers of a paper, by column."""
    place = files("curvote.papers") / paper / "published" / file
    return list(csv.DictReader(place.read_text(encoding="utf-8").splitlines()))


def to_json(rows: Sequence[Row]) -> str:
    """Return the rows as one JSON document, without NaN."""
    return json.dumps(list(rows), indent=1, allow_nan=False)


def to_csv(rows: Sequence[Row]) -> bytes:
    """Return the rows as a CSV file with a header."""
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue().encode()


Lines = tuple[list[dict[str, str]], list[str]]

NAMES = (
    "group",
    "representation",
    "d",
    "protocol",
    "learner",
    "split",
    "method",
    "setting",
    "quantity",
    "n_classes",
)


def laid_out(rows: Sequence[Row], across: str = "epsilon") -> Lines:
    """Return a comparison as lines of text, and the shown columns.

    Where values are printed, a line a cell: paper, curvote with one standard error,
    corrected, what is claimed and our bound if any, z. Elsewhere a line a method, with
    a column for each epsilon, if any, or for each number ``across`` ("n_classes").
    """
    return (
        _side_by_side(rows) if _has_values(rows, "published") else _pivot(rows, across)
    )


def _has_values(rows: Sequence[Row], name: str) -> bool:
    return any(row[name] is not None for row in rows)


def _side_by_side(rows: Sequence[Row]) -> Lines:
    names = varying_columns(rows, ("epsilon", *NAMES))
    limits = [name for name in ("claimed", "bound") if _has_values(rows, name)]
    values = ("paper", "curvote", "corrected", *limits, "z")
    lines = [
        column_texts(row, names)
        | {
            "paper": format_number(row, "published"),
            "curvote": with_error(row),
            **{name: format_number(row, name) for name in ("corrected", *limits)},
            "z": "" if row["z"] is None else f"{row['z']:+.1f}",
        }
        for row in rows
    ]
    return lines, [*names, *values]


def _pivot(rows: Sequence[Row], across: str) -> Lines:
    level_values = column_levels(rows, across)
    title = _TITLES[across] if any(level_values) else lambda _: "curvote"
    label_names = (name for name in ("epsilon", *NAMES) if name != across)
    names, columns = varying_columns(rows, label_names), list(map(title, level_values))
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        key = column_texts(row, names)
        empty = key | dict.fromkeys(columns, "")
        line = lines.setdefault(tuple(key.values()), empty)
        line[title(row[across])] = with_error(row)
    return list(lines.values()), [*names, *columns]


def varying_columns(rows: Sequence[Row], names: Iterable[str]) -> list[str]:
    """Return the columns whose values differ between rows."""
    return [name for name in names if len({row[name] for row in rows} - {None}) > 1]


def column_texts(row: Row, names: Iterable[str]) -> dict[str, str]:
    """Return the columns of a row as text."""
    return {name: _text(row[name]) for name in names}


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)


def level_heading(epsilon: float | None) -> str:
    """Return the heading of an epsilon's column."""
    return "no privacy" if epsilon is None else f"epsilon {epsilon:g}"


def _classes_heading(number: float | None) -> str:
    return "" if number is None else f"{number:g} classes"


_TITLES = {"epsilon": level_heading, "n_classes": _classes_heading}
