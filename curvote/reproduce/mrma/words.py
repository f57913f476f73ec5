"""Terminal text of an MRMA entry: rows, and how many cells agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from curvote.reproduce import words
from curvote.reproduce.mrma.contest import contest_cells, group_by_setting, table_lines
from curvote.reproduce.mrma.names import REPRODUCTIONS, MrmaEntry
from curvote.reproduce.mrma.results import count_verdicts, describe_cell
from curvote.reproduce.mrma.rows import count_agreeing
from curvote.reproduce.rows import Row, column_levels, with_error
from curvote.reproduce.words import (
    NAMES,
    Lines,
    column_texts,
    level_heading,
    varying_columns,
)


def agreement(name: str, rows: Sequence[Row]) -> Iterator[str]:
    """Yield the conclusions: how many cells agree, and the worst ones."""
    entry = REPRODUCTIONS[name]
    yield from _contest_lines(rows) if entry.contest else _agreement_lines(entry, rows)


def _contest_lines(rows: Sequence[Row]) -> Iterator[str]:
    contest = contest_cells(rows)
    yield ""
    yield from count_verdicts(contest)
    yield from (f"lost: {describe_cell(cell)}" for cell in contest if cell.better)


def _agreement_lines(entry: MrmaEntry, rows: Sequence[Row]) -> Iterator[str]:
    inside, n_scored = count_agreeing(entry, rows)
    if n_scored:
        assumption = "" if entry.limit == 3 else ", the paper's taken to be like ours,"
        points = ", ".join(f"{name} {points}" for name, points in entry.points.items())
        close = f" or within so many points: {points}" if points else ""
        yield (
            f"\n{inside} of {n_scored} cells within 3 standard"
            f" errors{assumption}{close}"
        )
        worst = max(rows, key=_format_difference)
        place = column_texts(worst, varying_columns(rows, ("epsilon", *NAMES)))
        where = ", ".join(f"{name} {text}" for name, text in place.items() if text)
        yield f"largest difference: {_format_difference(worst):.2f} points ({where})"


def _format_difference(row: Row) -> float:
    return abs(float(row["curvote"] - row["published"]))


def laid_out(name: str, rows: Sequence[Row]) -> Lines:
    """Return a comparison as lines of text, and the shown columns.

    In a contest a line is what a protocol ends in; else as in all wings.
    """
    contest = REPRODUCTIONS[name].contest
    return _protocol_rows(rows) if contest else words.laid_out(rows)


def _protocol_rows(rows: Sequence[Row]) -> Lines:
    columns = list(map(level_heading, column_levels(rows)))
    best_of = [
        {"setting": setting, "protocol": name, **dict.fromkeys(columns, "")}
        | {level_heading(row["epsilon"]): with_error(row) for row in line}
        for setting, setting_rows in group_by_setting(rows).items()
        for name, line in table_lines(setting_rows).items()
    ]
    return best_of, ["setting", "protocol", *columns]
