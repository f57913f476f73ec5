"""Tables on the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from curvote.chain.axis import Cell
from curvote.errors import UserError

if TYPE_CHECKING:  # pandas and YAML come with it, which other tables need not
    from curvote.flows.tracking.cells import Score
    from curvote.run.history import RunRecord

_ALIKE = itemgetter("stage", "part", "action", "reasons")


def print_rows(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    """Print chosen columns of plain rows."""
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(str(row[column]) for column in columns))
    console().print(table)


def print_plan(rows: Sequence[dict[str, Any]], *, why: bool = False) -> None:
    """Print a plan, the cells of a stage that share action and reason in one line.

    With ``why`` every reason stands on a line of its own, else the first and how many
    more there are.
    """
    shown: list[dict[str, Any]] = []
    parts = {(row["stage"], row["part"]) for row in rows}
    ways = Counter((stage, part.partition(".")[0]) for stage, part in parts)
    for (stage, part, action, reasons), group in groupby(rows, _ALIKE):
        cells = [row["cell"] for row in group]
        cell = cells[0] if len(cells) == 1 else f"{len(cells)} cells"
        first, *more = reasons if why else [_short(reasons)]
        system, _, own = part.partition(".")
        named = f"{stage} ({own})" if ways[stage, system] > 1 else stage
        line = {"stage": named, "cell": cell, "action": action}
        shown.append(line | {"reason": first})
        shown += (dict.fromkeys(line, "") | {"reason": reason} for reason in more)
    print_rows(shown, ("stage", "cell", "action", "reason"))


def _short(reasons: Sequence[str]) -> str:
    more = f", and {len(reasons) - 1} more: --why" if len(reasons) > 1 else ""
    return f"{reasons[0]}{more}"


def print_scores(
    record: RunRecord, rows: Sequence[dict[str, Any]], name: str | None = None
) -> None:
    """Print scores with standard errors, a table a metric, a block a learner.

    With ``name`` that metric alone, which may stand beside another, or be of each of
    many groups; UserError where the run has none of this name.
    """
    from curvote.flows.tracking.cells import scores_of

    every = scores_of(record, rows)
    scores = [score for score in every if not score.metric.each]
    if name is not None:
        scores = list(_only(every, name))
    for metric in dict.fromkeys(score.metric for score in scores):
        percent = " in %" if metric.shown == "percent" else ""
        title = f"{record.pipeline}: {metric.name}{percent}"
        own = [score for score in scores if score.metric == metric]
        _print_metric(f"{title}, {rows[0]['replicates']} times{_with(record)}", own)


def _with(record: RunRecord) -> str:
    """Return what the command line set, for the head of a table."""
    options = ", ".join(record.overrides)
    return f", with {options}" if options else ""


def _only(scores: Sequence[Score], name: str) -> Iterator[Score]:
    """Yield the scores of one metric."""
    found = [one for score in scores if (one := score.of(name)) is not None]
    if not found:
        every = (name for s in scores for name in (s.metric.name, *s.further))
        known = ", ".join(dict.fromkeys(every))
        raise UserError(f"--metric {name}: this run measures {known}.")
    yield from found


def _print_metric(title: str, scores: Sequence[Score]) -> None:
    """Print one metric, with a column for each place on the x-axis."""
    blocks = list(_blocks(scores))
    places = sorted({score.place for score in scores}, key=_rising)
    table = Table(box=None, pad_edge=False)
    longest = max((line for line, _ in blocks), key=len)
    table.add_column(", ".join(longest))
    table.add_column("method")
    for place in places:
        table.add_column(place.words or "no epsilon", justify="right")
    for line, own in blocks:
        _add_block(table, ", ".join(line.values()), own, places)
    _print_below(title, table, *_taken(scores))


def _taken(scores: Sequence[Score]) -> Iterator[str]:
    """Yield what each rule took, in words: "auto: joint at epsilon 1"."""
    asked = [score for score in scores if score.rule]
    for line in dict.fromkeys((score.line["setting"], score.rule) for score in asked):
        own = [s for s in asked if (s.line["setting"], s.rule) == line]
        places: dict[str, dict[str, None]] = {}
        for score in own:
            places.setdefault(score.method, {})[score.place.words] = None
        told = (f"{method} at {', '.join(at)}" for method, at in places.items())
        yield f"{line[0] or line[1]}: {'; '.join(told)}"


def _rising(place: Cell) -> float:
    """Return what sorts places on the x-axis; what has none stands last."""
    return next((v for _, v in place.pairs if not isinstance(v, str)), inf)


def _blocks(scores: Sequence[Score]) -> Iterator[tuple[dict[str, str], list[Score]]]:
    """Yield each narrowest line in words, with the scores that hold there."""
    known = [(score.line.with_(group=score.grouped or None), score) for score in scores]
    lines = dict.fromkeys(line for line, _ in known)
    for line in lines:
        if not any(line != other and line.serves(other) for other in lines):
            yield _words(line), [score for own, score in known if own.serves(line)]


def _words(line: Cell) -> dict[str, str]:
    """Return labels by their axes, setting and numbers last, without the protocol."""
    own = line.with_(protocol=None, setting=None, group=None).pairs
    texts = {axis: value for axis, value in own if isinstance(value, str)}
    others = {axis: f"{axis} {value}" for axis, value in own if axis not in texts}
    setting = {"setting": line["setting"]} if line["setting"] else {}
    group = {"group": line["group"]} if line["group"] else {}
    return texts | setting | others | group


def _add_block(
    table: Table, label: str, scores: Sequence[Score], places: Sequence[Cell]
) -> None:
    """Add the methods of a line, whose label stands in the first; the main one bold."""
    from curvote.flows.tracking.headline import main_scores

    main = {_row(score) for score in main_scores(scores)}
    for method in dict.fromkeys(map(_row, scores)):
        texts = {s.place: s.with_error for s in scores if _row(s) == method}
        shown = (texts.get(place, "") for place in places)
        table.add_row(label, method, *shown, style="bold" if method in main else None)
        label = ""
    table.add_section()


def _row(score: Score) -> str:
    return score.rule or score.method


def print_outcomes(
    record: RunRecord, found: Mapping[Cell, Mapping[str, float]]
) -> None:
    """Print what a production run knows: counts, and estimates with their errors."""
    rows = [{"cell": str(cell)} | outcome_words(known) for cell, known in found.items()]
    table = Table(box=None)
    for name in dict.fromkeys(name for row in rows for name in row):
        table.add_column(name, justify="left" if name == "cell" else "right")
    for row in rows:
        table.add_row(*row.values())
    _print_below(f"known from noised messages{_with(record)}", table)


def _print_below(title: str, table: Table, *notes: str) -> None:
    """Print a table below its title, which a narrow table would fold, above notes."""
    screen = console()
    screen.print(title, style="italic", markup=False, highlight=False, soft_wrap=True)
    screen.print(table)
    screen.print(*notes, "", sep="\n", markup=False, highlight=False)


def outcome_words(known: Mapping[str, float]) -> dict[str, str]:
    """Return the numbers of a cell as text; what has an error is a share."""
    counts = {n: f"{v:,.0f}" for n, v in known.items() if not n.endswith("_se")}
    shares = {
        name: f"{100 * known[name]:.1f} ± {100 * known[f'{name}_se']:.1f} %"
        for name in counts
        if f"{name}_se" in known
    }
    return counts | shares


def console() -> Console:
    """Return the terminal, or what is wide enough for a file."""
    found = Console()
    # A pipe has no width; folding numbers there would only make them unreadable.
    return found if found.is_terminal else Console(width=160)
