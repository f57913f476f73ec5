"""The page of a contest: its rows as Markdown tables, a section a setting."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from curvote.reproduce.mrma.contest import (
    ASKED,
    AUTO,
    ERRORS,
    OTHERS,
    POINTS,
    Cell,
    by_setting,
    cells,
    line_of,
    lines,
)
from curvote.reproduce.rows import Row, levels, with_error

_MARK = " †"
_ABOUT = """\
Misclassification of new clients in %, ± one standard error, over {times}. In each
setting all protocols ask the same clients, each with the same budget epsilon.

Made by `curvote reproduce beyond --replicates {replicates}{seed}`.

A cell is a setting at one epsilon. `auto` is best in it where neither the best
published method nor `majority` does better. It has lost where one of them is better by
more than 1 point and by more than 2 standard errors of the difference; else it is
within the limit. Published are all methods of `mrma`, with every learner, and the
histogram. The best of them is chosen by the very errors shown here: a favour."""
_AHEAD = """\
What `auto` never takes unasked, and where the best of it beats `auto` by more than the
same limit (in points): `volunteers` and `joined` need people who make their records and
labels public (50 here), `counts`, `stump`, `tree` and `sgd` are other rules."""
_LINES = """\
Each line is a protocol, with its learner. In brackets: what `auto` and `direct` took
at this epsilon, and which other published method is best. `clean` has no privacy."""


def markdown(rows: Sequence[Row], replicates: int, seed: int | None = None) -> str:
    """Return the rows of a contest as a page: a summary, then a table a setting.

    ``rows`` as `comparison` gives them; ``replicates`` and ``seed`` are what the runs
    had. The same rows give the same text.
    """
    judged = cells(rows)
    times = "1 replicate" if replicates == 1 else f"{replicates} replicates"
    chosen = "" if seed is None else f" --seed {seed}"
    parts = [
        "# Our protocols and the published ones",
        _ABOUT.format(times=times, replicates=replicates, seed=chosen),
        "## Summary",
        *_summary(judged),
        "## Settings",
        _LINES,
    ]
    for setting, own in by_setting(rows).items():
        mine = [cell for cell in judged if cell.auto["setting"] == setting]
        parts += [f"### {setting}", *_section(own, mine)]
    return "\n\n".join(parts) + "\n"


def counts(judged: Sequence[Cell]) -> Iterator[str]:
    """Yield how many cells hold: where learning is expected, and at less epsilon."""
    asked = [cell for cell in judged if cell.auto["epsilon"] >= ASKED]
    below = [cell for cell in judged if cell.auto["epsilon"] < ASKED]
    for size, own in (("of at least", asked), ("below", below)):
        number = Counter(cell.verdict for cell in own)
        if own:
            yield (
                f"{len(own) - number['lost']} of {len(own)} cells with epsilon {size}"
                f" {ASKED:g} hold: auto is no worse than the best published method and"
                f" the majority in {number['best']}, and by at most {POINTS:g} point or"
                f" {ERRORS:g} standard errors in {number['within']}"
            )


def told(cell: Cell) -> str:
    """Return where a cell is, what `auto` finds there, and what is better."""
    place = f"{cell.auto['setting']}, epsilon {cell.auto['epsilon']:g}"
    return f"{place}: {_called(cell.auto)}, {_better(cell)}"


def _better(cell: Cell) -> str:
    return f"better: {', '.join(map(_called, cell.better)) or 'none'}"


def _called(row: Row) -> str:
    note = _method(row)
    return f"{line_of(row)}{note and f' ({note})'} {with_error(row)}"


def _method(row: Row) -> str:
    """Return a row's method, empty where the protocol says it."""
    known = row["method"] in ("mrma", row["protocol"])
    return "" if known else str(row["method"]).replace("_", " ")


def _summary(judged: Sequence[Cell]) -> Iterator[str]:
    yield "\n".join(f"- {counted}." for counted in counts(judged))
    yield _grid(judged)
    lost = [f"- {told(cell)}" for cell in judged if cell.better]
    yield "\n".join(["Lost:", "", *lost]) if lost else "No cell is lost."
    if any(cell.unasked for cell in judged):
        yield _AHEAD
        yield _table(_by_setting(judged, _best_ahead), [cell.auto for cell in judged])


def _grid(judged: Sequence[Cell]) -> str:
    """Return the verdicts: a line a setting, a column an epsilon."""
    found = _by_setting(judged, lambda one: one.verdict + _MARK * bool(one.better))
    return _table(found, [cell.auto for cell in judged])


def _by_setting(
    judged: Sequence[Cell], said: Callable[[Cell], str]
) -> dict[str, dict[float | None, str]]:
    """Return what is said of each cell, by setting and epsilon."""
    found: dict[str, dict[float | None, str]] = {}
    for cell in judged:
        found.setdefault(cell.auto["setting"], {})[cell.auto["epsilon"]] = said(cell)
    return found


def _best_ahead(cell: Cell) -> str:
    """Return what beats `auto` most, if it is asked for, and by how many points."""
    if not cell.ahead:
        return ""
    first = cell.ahead[0]
    return f"{first['protocol']} {first['curvote'] - cell.auto['curvote']:+.1f}"


def _section(rows: Sequence[Row], judged: Sequence[Cell]) -> Iterator[str]:
    """Yield the table of one setting, and what beats `auto` where it has lost."""
    lost = {cell.auto["epsilon"]: cell for cell in judged if cell.better}
    texts = {
        name: {row["epsilon"]: _text(row, name, lost) for row in line}
        for name, line in lines(rows).items()
    }
    yield _table(texts, rows)
    if lost:
        notes = (f"-{_MARK} epsilon {e:g}: {_better(lost[e])}" for e in sorted(lost))
        yield "\n".join(notes)


def _text(row: Row, line: str, lost: Mapping[float, Cell]) -> str:
    learner = row["learner"] if line == OTHERS else None
    note = ", ".join(filter(None, (_method(row), learner)))
    mark = _MARK if row["protocol"] == AUTO and row["epsilon"] in lost else ""
    return with_error(row) + (f" ({note})" if note else "") + mark


def _table(texts: Mapping[str, Mapping[float | None, str]], rows: Iterable[Row]) -> str:
    """Return a Markdown table: a line a name, a column for each epsilon of ``rows``."""
    places, table = levels(rows), Table(box=MARKDOWN)
    for head in ["epsilon", *map(_level, places)]:
        table.add_column(head, no_wrap=True)
    for name, line in texts.items():
        cells = [name, *(line.get(place, "") for place in places)]
        table.add_row(*(text.replace("|", r"\|") for text in cells))
    page = io.StringIO()
    plain = Console(file=page, width=2000, color_system=None, markup=False, emoji=False)
    plain.print(table)
    return page.getvalue().strip()


def _level(epsilon: float | None) -> str:
    return "no privacy" if epsilon is None else f"{epsilon:g}"
