"""Rows of a reproduction as text: beside what is printed, or a column a level."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from curvote.reproduce.rows import Row, levels, number, with_error

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
    """Return a comparison as lines of text and the columns to show.

    Where values are printed, a line a cell: paper, curvote with one standard error,
    corrected, what is claimed and our bound if any, z. Elsewhere a line a method, with
    a column for each epsilon, if any, or for each number ``across`` ("n_classes").
    """
    return _beside(rows) if _any(rows, "published") else _across(rows, across)


def _any(rows: Sequence[Row], name: str) -> bool:
    return any(row[name] is not None for row in rows)


def _beside(rows: Sequence[Row]) -> Lines:
    names = varying(rows, ("epsilon", *NAMES))
    limits = [name for name in ("claimed", "bound") if _any(rows, name)]
    values = ("paper", "curvote", "corrected", *limits, "z")
    lines = [
        named(row, names)
        | {
            "paper": number(row, "published"),
            "curvote": with_error(row),
            **{name: number(row, name) for name in ("corrected", *limits)},
            "z": "" if row["z"] is None else f"{row['z']:+.1f}",
        }
        for row in rows
    ]
    return lines, [*names, *values]


def _across(rows: Sequence[Row], across: str) -> Lines:
    known = levels(rows, across)
    title = _TITLES[across] if any(known) else lambda _: "curvote"
    others = (name for name in ("epsilon", *NAMES) if name != across)
    names, columns = varying(rows, others), list(map(title, known))
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        mine = named(row, names)
        empty = mine | dict.fromkeys(columns, "")
        line = found.setdefault(tuple(mine.values()), empty)
        line[title(row[across])] = with_error(row)
    return list(found.values()), [*names, *columns]


def varying(rows: Sequence[Row], names: Iterable[str]) -> list[str]:
    """Return those of the columns that tell rows apart."""
    return [name for name in names if len({row[name] for row in rows} - {None}) > 1]


def named(row: Row, names: Iterable[str]) -> dict[str, str]:
    """Return the columns of a row as text."""
    return {name: _text(row[name]) for name in names}


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)


def level(epsilon: float | None) -> str:
    """Return an epsilon as a column is called."""
    return "no privacy" if epsilon is None else f"epsilon {epsilon:g}"


def _classes(number: float | None) -> str:
    return "" if number is None else f"{number:g} classes"


_TITLES = {"epsilon": level, "n_classes": _classes}
