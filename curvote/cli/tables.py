"""Tables of the commands on the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from curvote.base.errors import UserError
from curvote.chain.axis import Cell

if TYPE_CHECKING:
    from curvote.flows.tracking.cells import Score
    from curvote.pipeline.store.records import RunRecord


_GROUP_KEY = itemgetter("stage", "part", "action", "reasons")


def print_rows(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    """Print chosen columns of plain rows."""
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(str(row[column]) for column in columns))
    make_console().print(table)


def print_plan(rows: Sequence[dict[str, Any]], *, why: bool = False) -> None:
    """Print a plan, the cells of a stage that share action and reason in one line.

    With ``why`` every reason stands on a line of its own, else the first and how many
    more there are.
    """
    lines: list[dict[str, Any]] = []
    parts = {(row["stage"], row["part"]) for row in rows}
    ways = Counter((stage, part.partition(".")[0]) for stage, part in parts)
    for (stage, part, action, reasons), group in groupby(rows, _GROUP_KEY):
        cells = [row["cell"] for row in group]
        cell = cells[0] if len(cells) == 1 else f"{len(cells)} cells"
        first, *more = reasons if why else [_first_reason(reasons)]
        system, _, part_name = part.partition(".")
        named = f"{stage} ({part_name})" if ways[stage, system] > 1 else stage
        line = {"stage": named, "cell": cell, "action": action}
        lines.append(line | {"reason": first})
        lines += (dict.fromkeys(line, "") | {"reason": reason} for reason in more)
    print_rows(lines, ("stage", "cell", "action", "reason"))


def _first_reason(reasons: Sequence[str]) -> str:
    more = f", and {len(reasons) - 1} more: --why" if len(reasons) > 1 else ""
    return f"{reasons[0]}{more}"


def print_scores(
    record: RunRecord, rows: Sequence[dict[str, Any]], name: str | None = None
) -> None:
    """Print scores with standard errors, a table a metric, a block a learner.

    With ``name`` that metric alone, which may stand beside another, or be of each of
    many groups; UserError where the run has none of this name.
    """
    from curvote.flows.tracking.cells import load_scores

    every = load_scores(record, rows)
    scores = [score for score in every if not score.metric.group_kind]
    if name is not None:
        scores = list(_scores_of_metric(every, name))
    for metric in dict.fromkeys(score.metric for score in scores):
        percent = " in %" if metric.display == "percent" else ""
        title = f"{record.pipeline}: {metric.name}{percent}"
        metric_scores = [score for score in scores if score.metric == metric]
        _print_metric(
            f"{title}, {rows[0]['replicates']} times{_overrides_note(record)}",
            metric_scores,
        )


def _overrides_note(record: RunRecord) -> str:
    """Return the overrides of a run, for the head of a table."""
    options = ", ".join(record.overrides)
    return f", with {options}" if options else ""


def _scores_of_metric(scores: Sequence[Score], name: str) -> Iterator[Score]:
    """Yield the scores of one metric."""
    matches = [match for score in scores if (match := score.score_of(name)) is not None]
    if not matches:
        every = (name for s in scores for name in (s.metric.name, *s.further))
        names_known = ", ".join(dict.fromkeys(every))
        raise UserError(f"--metric {name}: this run measures {names_known}.")
    yield from matches


def _print_metric(title: str, scores: Sequence[Score]) -> None:
    """Print one metric, with a column for each place on the x-axis."""
    blocks = list(_score_blocks(scores))
    places = sorted({score.place for score in scores}, key=_place_order)
    table = Table(box=None, pad_edge=False)
    longest = max((line for line, _ in blocks), key=len)
    table.add_column(", ".join(longest))
    table.add_column("method")
    for place in places:
        table.add_column(place.words or "no epsilon", justify="right")
    for line, line_scores in blocks:
        _add_block(table, ", ".join(line.values()), line_scores, places)
    _print_below(title, table, *_describe_choices(scores))


def _describe_choices(scores: Sequence[Score]) -> Iterator[str]:
    """Yield the choices of each rule, in words: "auto: joint at epsilon 1"."""
    rule_scores = [score for score in scores if score.rule]
    for line in dict.fromkeys(
        (score.line["setting"], score.rule) for score in rule_scores
    ):
        of_rule = [s for s in rule_scores if (s.line["setting"], s.rule) == line]
        places: dict[str, dict[str, None]] = {}
        for score in of_rule:
            places.setdefault(score.method, {})[score.place.words] = None
        texts = (f"{method} at {', '.join(at)}" for method, at in places.items())
        yield f"{line[0] or line[1]}: {'; '.join(texts)}"


def _place_order(place: Cell) -> float:
    """Return a sort key of places on the x-axis; no place is last."""
    return next((v for _, v in place.pairs if not isinstance(v, str)), inf)


def _score_blocks(
    scores: Sequence[Score],
) -> Iterator[tuple[dict[str, str], list[Score]]]:
    """Yield each narrowest line in words, with its scores."""
    scored_lines = [
        (score.line.with_values(group=score.group_label or None), score)
        for score in scores
    ]
    lines = dict.fromkeys(line for line, _ in scored_lines)
    for line in lines:
        if not any(line != other and line.serves(other) for other in lines):
            yield (
                _line_labels(line),
                [
                    score
                    for score_line, score in scored_lines
                    if score_line.serves(line)
                ],
            )


def _line_labels(line: Cell) -> dict[str, str]:
    """Return labels by axis, without the protocol; numbers are last."""
    pairs = line.with_values(protocol=None, setting=None, group=None).pairs
    texts = {axis: value for axis, value in pairs if isinstance(value, str)}
    number_labels = {
        axis: f"{axis} {value}" for axis, value in pairs if axis not in texts
    }
    setting = {"setting": line["setting"]} if line["setting"] else {}
    group = {"group": line["group"]} if line["group"] else {}
    return texts | setting | number_labels | group


def _add_block(
    table: Table, label: str, scores: Sequence[Score], places: Sequence[Cell]
) -> None:
    """Add the methods of a line to a table, the main one bold."""
    from curvote.flows.tracking.headline import main_method_scores

    main = {_method_label(score) for score in main_method_scores(scores)}
    for method in dict.fromkeys(map(_method_label, scores)):
        texts = {s.place: s.with_error for s in scores if _method_label(s) == method}
        cells = (texts.get(place, "") for place in places)
        table.add_row(label, method, *cells, style="bold" if method in main else None)
        label = ""
    table.add_section()


def _method_label(score: Score) -> str:
    return score.rule or score.method


def print_outcomes(
    record: RunRecord, outcomes: Mapping[Cell, Mapping[str, float]]
) -> None:
    """Print the production metrics of a run: counts, and shares with errors."""
    rows = [
        {"cell": str(cell)} | format_outcome(values)
        for cell, values in outcomes.items()
    ]
    table = Table(box=None)
    for name in dict.fromkeys(name for row in rows for name in row):
        table.add_column(name, justify="left" if name == "cell" else "right")
    for row in rows:
        table.add_row(*row.values())
    _print_below(f"known from noised messages{_overrides_note(record)}", table)


def _print_below(title: str, table: Table, *notes: str) -> None:
    """Print a table below its title, which a narrow table would fold, above notes."""
    screen = make_console()
    screen.print(title, style="italic", markup=False, highlight=False, soft_wrap=True)
    screen.print(table)
    screen.print(*notes, "", sep="\n", markup=False, highlight=False)


def format_outcome(values: Mapping[str, float]) -> dict[str, str]:
    """Return a cell's production metrics as text, shares with errors."""
    counts = {n: f"{v:,.0f}" for n, v in values.items() if not n.endswith("_se")}
    shares = {
        name: f"{100 * values[name]:.1f} ± {100 * values[f'{name}_se']:.1f} %"
        for name in counts
        if f"{name}_se" in values
    }
    return counts | shares


def make_console() -> Console:
    """Return a console for the terminal, or a wide one for a file."""
    terminal = Console()
    # A pipe has no width; folding numbers there would only make them unreadable.
    return terminal if terminal.is_terminal else Console(width=160)
