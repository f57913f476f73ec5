"""What `curvote reproduce` says: the rows laid out as text, and how many agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from curvote.reproduce import words
from curvote.reproduce.mrma.contest import by_setting, cells, lines
from curvote.reproduce.mrma.names import REPRODUCTIONS, Shown
from curvote.reproduce.mrma.results import counts, told
from curvote.reproduce.mrma.rows import agreeing
from curvote.reproduce.rows import Row, levels, with_error
from curvote.reproduce.words import NAMES, Lines, level, named, varying


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
        place = named(worst, varying(rows, ("epsilon", *NAMES)))
        where = ", ".join(f"{name} {text}" for name, text in place.items() if text)
        yield f"largest difference: {_difference(worst):.2f} points ({where})"


def _difference(row: Row) -> float:
    return abs(float(row["curvote"] - row["published"]))


def laid_out(name: str, rows: Sequence[Row]) -> Lines:
    """Return a comparison as lines of text and the columns to show.

    In a contest a line is what a protocol ends in; else as in all wings.
    """
    contest = REPRODUCTIONS[name].contest
    return _by_protocol(rows) if contest else words.laid_out(rows)


def _by_protocol(rows: Sequence[Row]) -> Lines:
    columns = list(map(level, levels(rows)))
    found = [
        {"setting": setting, "protocol": name, **dict.fromkeys(columns, "")}
        | {level(row["epsilon"]): with_error(row) for row in line}
        for setting, own in by_setting(rows).items()
        for name, line in lines(own).items()
    ]
    return found, ["setting", "protocol", *columns]
