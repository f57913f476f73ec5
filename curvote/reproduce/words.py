"""Layout of a reproduction's rows as terminal text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from curvote.reproduce.rows import Row, column_levels, format_number, with_error

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
