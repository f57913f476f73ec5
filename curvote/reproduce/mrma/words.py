"""What `curvote reproduce` says: the rows laid out as text, and how many agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from curvote.reproduce.mrma.contest import by_setting, cells, lines
from curvote.reproduce.mrma.names import REPRODUCTIONS, Shown
from curvote.reproduce.mrma.results import counts, told
from curvote.reproduce.mrma.rows import agreeing
from curvote.reproduce.rows import Row, levels, with_error

Lines = tuple[list[dict[str, str]], list[str]]

_NAMES = ("group", "representation", "d", "learner", "split", "method", "setting")


def agreement(name: str, rows: Sequence[Row]) -> Iterator[str]:
    """Yield the last words: how many cells agree or hold, and which are worst."""
    entry = REPRODUCTIONS[name]
    yield from _contested(rows) if entry.contest else _agreed(entry, rows)


def _contested(rows: Sequence[Row]) -> Iterator[str]:
    judged = cells(rows)
    yield ""
    yield from counts(judged)
    yield from (f"lost: {told(cell)}" for cell in judged if cell.better)


def _agreed(entry: Shown, rows: Sequence[Row]) -> Iterator[str]:
    inside, known = agreeing(entry, rows)
    if known:
        mine = "" if entry.limit == 3 else ", the paper's taken to be like ours,"
        points = ", ".join(f"{name} {points}" for name, points in entry.points.items())
        close = f" or within so many points: {points}" if points else ""
        yield f"\n{inside} of {known} cells within 3 standard errors{mine}{close}"
        worst = max(rows, key=_difference)
        named = _named(worst, _varying(rows, ("epsilon", *_NAMES)))
        where = ", ".join(f"{name} {text}" for name, text in named.items() if text)
        yield f"largest difference: {_difference(worst):.2f} points ({where})"


def _difference(row: Row) -> float:
    return abs(float(row["curvote"] - row["published"]))


def laid_out(name: str, rows: Sequence[Row]) -> Lines:
    """Return a comparison as lines of text and the columns to show.

    Where values are printed, a line a cell: paper, curvote with one standard error,
    corrected, z. Elsewhere a line a method, with a column for each epsilon; in a
    contest a line for what each protocol ends in.
    """
    if REPRODUCTIONS[name].contest:
        return _by_protocol(rows)
    if any(row["published"] is not None for row in rows):
        return _beside(rows)
    return _by_epsilon(rows)


def _beside(rows: Sequence[Row]) -> Lines:
    names = _varying(rows, ("epsilon", *_NAMES))
    values = ("paper", "curvote", "corrected", "z")
    lines = [
        _named(row, names)
        | {
            "paper": _number(row["published"]),
            "curvote": with_error(row),
            "corrected": _number(row["corrected"]),
            "z": "" if row["z"] is None else f"{row['z']:+.1f}",
        }
        for row in rows
    ]
    return lines, [*names, *values]


def _by_protocol(rows: Sequence[Row]) -> Lines:
    columns = list(map(_level, levels(rows)))
    found = [
        {"setting": setting, "protocol": name, **dict.fromkeys(columns, "")}
        | {_level(row["epsilon"]): with_error(row) for row in line}
        for setting, own in by_setting(rows).items()
        for name, line in lines(own).items()
    ]
    return found, ["setting", "protocol", *columns]


def _by_epsilon(rows: Sequence[Row]) -> Lines:
    names, columns = _varying(rows, _NAMES), list(map(_level, levels(rows)))
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        named = _named(row, names)
        empty = named | dict.fromkeys(columns, "")
        line = found.setdefault(tuple(named.values()), empty)
        line[_level(row["epsilon"])] = with_error(row)
    return list(found.values()), [*names, *columns]


def _varying(rows: Sequence[Row], names: Iterable[str]) -> list[str]:
    return [name for name in names if len({row[name] for row in rows} - {None}) > 1]


def _named(row: Row, names: Iterable[str]) -> dict[str, str]:
    return {name: _text(row[name]) for name in names}


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _level(epsilon: float | None) -> str:
    return "no privacy" if epsilon is None else f"epsilon {epsilon:g}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
