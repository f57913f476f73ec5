"""Rows of a reproduction: selection, text for the terminal, CSV and JSON."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.resources import files
from typing import Any

Row = dict[str, Any]

COLUMNS = (
    *("pipeline", "setting", "protocol", "learner", "representation", "d", "epsilon"),
    *("method", "split", "group", "quantity", "n_classes"),
    *("published", "curvote", "corrected", "claimed", "bound", "se", "z"),
)


def complete_rows(rows: Iterable[Row]) -> list[Row]:
    """Return the rows with all ``COLUMNS`` in order, None where absent."""
    return [{name: row.get(name) for name in COLUMNS} for row in rows]


def axis_value(row: Row, name: str) -> Any:
    """Return the value of a column, or of an axis that ``setting`` names: "gamma=1"."""
    if name in row:
        return row[name]
    axes = (part.partition("=") for part in (row["setting"] or "").split())
    return next((float(text) for axis, _, text in axes if axis == name), None)


def column_as_ours(rows: Iterable[Row], name: str) -> list[Row]:
    """Return the rows with another column's values as curvote's, without error."""
    if name == "curvote":
        return list(rows)
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


# Columns of printed files that hold numbers.
_PRINTED_NUMBERS = {
    "epsilon": float,
    "d": int,
    "value": float,
    "misclassification_pct": float,
    "accuracy_pct": float,
    "sd": float,
    "draws": int,
}


def published_rows(paper: str, file: str, **values: Any) -> list[Row]:
    """Return the lines of one file of printed numbers of a paper that hold ``values``.

    What a line leaves empty is None.
    """
    place = files("curvote.papers") / paper / "published" / file
    lines = csv.DictReader(place.read_text(encoding="utf-8").splitlines())
    parsed = [
        {n: _PRINTED_NUMBERS.get(n, str)(text) if text else None for n, text in it}
        for it in map(dict.items, lines)
    ]
    return select(parsed, **values)


def beside_published(rows: Iterable[Row], printed: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows, each with the ``value`` of the printed line that names it.

    A line names a row by the columns that both have and the line does not leave empty.
    """
    for row in rows:
        values = (
            line["value"]
            for line in printed
            if all(row.get(n) == v for n, v in line.items() if n in NAMED and v)
        )
        yield row | {"published": next(values, None)}


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
    *("group", "representation", "d", "protocol", "learner", "split", "method"),
    *("setting", "quantity", "n_classes"),
)
NAMED = ("epsilon", *NAMES)


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
    names = varying_columns(rows, NAMED)
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
    label_names = (name for name in NAMED if name != across)
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


_TITLES: dict[str, Callable[[float | None], str]] = {
    "epsilon": level_heading,
    "n_classes": lambda number: "" if number is None else f"{number:g} classes",
}
