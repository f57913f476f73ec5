"""Page of a contest: its rows as Markdown tables, a section a setting."""

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
    ContestCell,
    contest_cells,
    group_by_setting,
    line_name,
    table_lines,
)
from curvote.reproduce.rows import Row, column_levels, with_error

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
    contest = contest_cells(rows)
    times = "1 replicate" if replicates == 1 else f"{replicates} replicates"
    chosen = "" if seed is None else f" --seed {seed}"
    parts = [
        "# Our protocols and the published ones",
        _ABOUT.format(times=times, replicates=replicates, seed=chosen),
        "## Summary",
        *_summary_lines(contest),
        "## Settings",
        _LINES,
    ]
    for setting, setting_rows in group_by_setting(rows).items():
        setting_cells = [cell for cell in contest if cell.auto["setting"] == setting]
        parts += [f"### {setting}", *_setting_section(setting_rows, setting_cells)]
    return "\n\n".join(parts) + "\n"


def count_verdicts(contest: Sequence[ContestCell]) -> Iterator[str]:
    """Yield how many cells hold, at large epsilons and at small ones."""
    learnable = [cell for cell in contest if cell.auto["epsilon"] >= ASKED]
    below = [cell for cell in contest if cell.auto["epsilon"] < ASKED]
    for size, size_cells in (("of at least", learnable), ("below", below)):
        number = Counter(cell.verdict for cell in size_cells)
        if size_cells:
            yield (
                f"{len(size_cells) - number['lost']} of {len(size_cells)} cells with"
                f" epsilon {size}"
                f" {ASKED:g} hold: auto is no worse than the best published method and"
                f" the majority in {number['best']}, and by at most {POINTS:g} point or"
                f" {ERRORS:g} standard errors in {number['within']}"
            )


def describe_cell(cell: ContestCell) -> str:
    """Return a cell's place, the result of `auto`, and what is better."""
    place = f"{cell.auto['setting']}, epsilon {cell.auto['epsilon']:g}"
    return f"{place}: {_row_label(cell.auto)}, {_describe_better(cell)}"


def _describe_better(cell: ContestCell) -> str:
    return f"better: {', '.join(map(_row_label, cell.better)) or 'none'}"


def _row_label(row: Row) -> str:
    note = _method_label(row)
    return f"{line_name(row)}{note and f' ({note})'} {with_error(row)}"


def _method_label(row: Row) -> str:
    """Return a row's method, empty where the protocol says it."""
    implied = row["method"] in ("mrma", row["protocol"])
    return "" if implied else str(row["method"]).replace("_", " ")


def _summary_lines(contest: Sequence[ContestCell]) -> Iterator[str]:
    yield "\n".join(f"- {counted}." for counted in count_verdicts(contest))
    yield _verdict_grid(contest)
    lost = [f"- {describe_cell(cell)}" for cell in contest if cell.better]
    yield "\n".join(["Lost:", "", *lost]) if lost else "No cell is lost."
    if any(cell.opt_in for cell in contest):
        yield _AHEAD
        yield _markdown_table(
            _cell_texts(contest, _best_ahead), [cell.auto for cell in contest]
        )


def _verdict_grid(contest: Sequence[ContestCell]) -> str:
    """Return a table of verdicts: a line a setting, a column an epsilon."""
    verdicts = _cell_texts(contest, lambda one: one.verdict + _MARK * bool(one.better))
    return _markdown_table(verdicts, [cell.auto for cell in contest])


def _cell_texts(
    contest: Sequence[ContestCell], describe: Callable[[ContestCell], str]
) -> dict[str, dict[float | None, str]]:
    """Return the description of each cell by setting and epsilon."""
    texts: dict[str, dict[float | None, str]] = {}
    for cell in contest:
        texts.setdefault(cell.auto["setting"], {})[cell.auto["epsilon"]] = describe(
            cell
        )
    return texts


def _best_ahead(cell: ContestCell) -> str:
    """Return the best opt-in rival of `auto` and its lead in points."""
    if not cell.opt_in_ahead:
        return ""
    first = cell.opt_in_ahead[0]
    return f"{first['protocol']} {first['curvote'] - cell.auto['curvote']:+.1f}"


def _setting_section(
    rows: Sequence[Row], contest: Sequence[ContestCell]
) -> Iterator[str]:
    """Yield the table of one setting, and the rivals where `auto` lost."""
    lost = {cell.auto["epsilon"]: cell for cell in contest if cell.better}
    texts = {
        name: {row["epsilon"]: _cell_text(row, name, lost) for row in line}
        for name, line in table_lines(rows).items()
    }
    yield _markdown_table(texts, rows)
    if lost:
        notes = (
            f"-{_MARK} epsilon {e:g}: {_describe_better(lost[e])}" for e in sorted(lost)
        )
        yield "\n".join(notes)


def _cell_text(row: Row, line: str, lost: Mapping[float, ContestCell]) -> str:
    learner = row["learner"] if line == OTHERS else None
    note = ", ".join(filter(None, (_method_label(row), learner)))
    mark = _MARK if row["protocol"] == AUTO and row["epsilon"] in lost else ""
    return with_error(row) + (f" ({note})" if note else "") + mark


def _markdown_table(
    texts: Mapping[str, Mapping[float | None, str]], rows: Iterable[Row]
) -> str:
    """Return a Markdown table: a line a name, a column for each epsilon of ``rows``."""
    places, table = column_levels(rows), Table(box=MARKDOWN)
    for head in ["epsilon", *map(_level_text, places)]:
        table.add_column(head, no_wrap=True)
    for name, line in texts.items():
        cells = [name, *(line.get(place, "") for place in places)]
        table.add_row(*(text.replace("|", r"\|") for text in cells))
    page = io.StringIO()
    plain = Console(file=page, width=2000, color_system=None, markup=False, emoji=False)
    plain.print(table)
    return page.getvalue().strip()


def _level_text(epsilon: float | None) -> str:
    return "no privacy" if epsilon is None else f"{epsilon:g}"
