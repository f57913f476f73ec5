"""Tables of the commands on the terminal."""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from curvote.base.errors import UserError
from curvote.chain.axis import Cell
from curvote.cli import terminal
from curvote.flows.tracking import cells as score_cells
from curvote.messages.measures import errors_tell_nothing
from curvote.pipeline.config.project import Project
from curvote.pipeline.run import comparison as comparisons
from curvote.pipeline.store import records
from curvote.report.card import Card, PublicBounds


def print_scores(
    record: records.RunRecord, rows: Sequence[dict[str, Any]], name: str | None = None
) -> None:
    """Print scores with standard errors, a table a metric, a block a learner.

    With ``name`` that metric alone, which may stand beside another, or be of each of
    many groups; UserError where the run has none of this name.
    """
    every = score_cells.load_scores(record, rows)
    if name is None:
        scores = [score for score in every if not score.metric.group_kind]
        if errors_tell_nothing(rows):
            print("No privacy errs as often as the majority, so errors tell nothing.")
            further = (pair for s in scores for pair in s.further.items())
            names = dict.fromkeys(name for name, metric in further if metric.stands_in)
            ahead = [s.score_of(name) for name in names for s in scores]
            scores = [score for score in ahead if score is not None] + scores
    else:
        matches = (score.score_of(name) for score in every)
        scores = [score for score in matches if score is not None]
        if not scores:
            measured = (name for s in every for name in (s.metric.name, *s.further))
            names_known = ", ".join(dict.fromkeys(measured))
            raise UserError(f"--metric {name}: this run measures {names_known}.")
    for metric in dict.fromkeys(score.metric for score in scores):
        percent = " in %" if metric.display == "percent" else ""
        times = f"{rows[0]['replicates']} times{_overrides_note(record)}"
        of_metric = [score for score in scores if score.metric == metric]
        _print_metric(f"{record.pipeline}: {metric.name}{percent}, {times}", of_metric)


def _overrides_note(record: records.RunRecord) -> str:
    options = ", ".join(record.overrides)
    return f", with {options}" if options else ""


def _print_metric(title: str, scores: Sequence[score_cells.Score]) -> None:
    """Print one metric, a column for each place on the x-axis, the main method bold."""
    # Each narrowest line in words, with its scores.
    blocks: list[tuple[dict[str, str], list[score_cells.Score]]] = []
    scored_lines = [
        (score.line.with_values(group=score.group_label or None), score)
        for score in scores
    ]
    lines = dict.fromkeys(line for line, _ in scored_lines)
    for at_line in lines:
        if not any(at_line != other and at_line.serves(other) for other in lines):
            plain = at_line.with_values(protocol=None, setting=None, group=None)
            words = {axis: v for axis, v in plain.pairs if isinstance(v, str)}
            pairs = ((axis, v) for axis, v in plain.pairs if not isinstance(v, str))
            numbers = {axis: f"{axis} {value}" for axis, value in pairs}
            setting = {"setting": at_line["setting"]} if at_line["setting"] else {}
            group = {"group": at_line["group"]} if at_line["group"] else {}
            served = [score for at, score in scored_lines if at.serves(at_line)]
            blocks.append((words | setting | numbers | group, served))

    def first_number(place: Cell) -> float:  # no number: last
        return next((v for _, v in place.pairs if not isinstance(v, str)), inf)

    places = sorted({score.place for score in scores}, key=first_number)
    table = Table(box=None, pad_edge=False)
    longest = max((line for line, _ in blocks), key=len)
    table.add_column(", ".join(longest))
    table.add_column("method")
    for place in places:
        table.add_column(place.words or "no epsilon", justify="right")
    for line, line_scores in blocks:
        label = ", ".join(line.values())
        main = set(map(_method_label, score_cells.main_method_scores(line_scores)))
        for method in dict.fromkeys(map(_method_label, line_scores)):
            of_method = (s for s in line_scores if _method_label(s) == method)
            texts = {score.place: score.with_error for score in of_method}
            cells = (texts.get(place, "") for place in places)
            style = "bold" if method in main else None
            table.add_row(label, method, *cells, style=style)
            label = ""
        table.add_section()
    # The choices of each rule: "auto: joint at epsilon 1".
    choices: dict[tuple[Any, Any], dict[str, dict[str, None]]] = {}
    for score in scores:
        if score.rule:
            places_of = choices.setdefault((score.line["setting"], score.rule), {})
            places_of.setdefault(score.method, {})[score.place.words] = None
    notes = (
        f"{setting or rule}: "
        + "; ".join(f"{method} at {', '.join(at)}" for method, at in chosen.items())
        for (setting, rule), chosen in choices.items()
    )
    _print_below(title, table, *notes)


def _method_label(score: score_cells.Score) -> str:
    return score.rule or score.method


def print_outcomes(project: Project, record: records.RunRecord) -> None:
    """Print the production metrics of a run: counts, and shares with errors."""
    outcomes = score_cells.outcome_texts(project, record)
    rows = [{"cell": str(cell)} | texts for cell, texts in outcomes.items()]
    table = Table(box=None)
    for name in dict.fromkeys(name for row in rows for name in row):
        table.add_column(name, justify="left" if name == "cell" else "right")
    for row in rows:
        table.add_row(*row.values())
    _print_below(f"known from noised messages{_overrides_note(record)}", table)


def _print_below(title: str, table: Table, *notes: str) -> None:
    """Print a table below its title, which a narrow table would fold, above notes."""
    screen = terminal.make_console()
    screen.print(title, style="italic", markup=False, highlight=False, soft_wrap=True)
    screen.print(table)
    screen.print(*notes, "", sep="\n", markup=False, highlight=False)


_KEY_COLUMNS = ("stage", "cell", "reasons")


def print_comparison(
    comparison: comparisons.RunComparison, *, every: bool, page: Path | None
) -> None:
    """Print settings, keys, scores and figures; ``every``: equal ones too."""
    for which, run in (("A", comparison.a), ("B", comparison.b)):
        options = "".join(f" --set {override}" for override in run.overrides)
        about = f"{run.id}, {run.pipeline}{options}, {run.started}, {run.status}"
        print(f"{which}: {about}")
    print("\nsettings")
    for setting in comparison.settings:
        print(f"  {setting}")
    print("" if comparison.settings else "  equal\n", end="")
    print(f"\nstages: {len(comparison.keys)} differ, {comparison.same} are equal")
    if comparison.keys:
        all_rows = [
            (change.stage, str(change.cell), "; ".join(change.reasons))
            for change in comparison.keys
        ]
        rows = all_rows if every else comparisons.group_key_changes(comparison.keys)
        terminal.print_rows(
            [dict(zip(_KEY_COLUMNS, row, strict=True)) for row in rows], _KEY_COLUMNS
        )
    print("\nscores: " + " ".join(comparison.notes))
    if comparison.scores:
        print(comparison.describe_count)
        if changes := comparison.scores if every else comparison.significant:
            scores = [
                {
                    "cell": str(change.cell),
                    "method": change.where["method"],
                    "metric": change.metric.name,
                    "A": change.format_value(change.a),
                    "B": change.format_value(change.b),
                    "B - A": change.format_value(change.difference),
                    "se": "" if change.se is None else change.format_value(change.se),
                    "z": "" if change.z is None else f"{change.z:+.1f}",
                    "verdict": change.verdict,
                }
                for change in changes
            ]
            terminal.print_rows(scores, list(scores[0]))
    print("\nfigures")
    if page is not None:
        print(f"  side by side: {terminal.relative_to_here(page)}")
        return
    runs = (comparison.a, comparison.b)
    for which, run, own_page in zip("AB", runs, comparison.pages, strict=True):
        if own_page:
            where = str(terminal.relative_to_here(own_page))
        elif run.status != "completed":
            where = f"none: the run is {run.status}"
        else:
            where = f"none; `curvote report {run.pipeline} --run {run.id}` draws them"
        print(f"  {which}: {where}")
    print("  `--page` draws them side by side")


MAX_SHOWN_FEATURES = 40


def print_card(card: Card) -> None:
    """Print a data card as two tables: the data set, and its features."""
    terminal.print_facts(card.name, _card_facts(card))
    if 0 < len(card.features) <= MAX_SHOWN_FEATURES:
        print()
        features = [
            {
                "feature": escape(feature.name),
                "unit": escape(feature.unit),
                "bounds": _format_bounds(feature.bounds),
                "missing": f"{feature.missing:,}",
                "clipped": _format_percent(feature.bounds.clipped),
                "why these bounds": escape(feature.bounds.why),
            }
            for feature in card.features
        ]
        terminal.print_rows(features, list(features[0]))


def _card_facts(card: Card) -> Iterator[tuple[str, str]]:
    yield "title", card.title
    yield "clients", f"{card.clients:,} of {card.points} numbers each"
    yield "classes", _format_shares(card.counts)
    for server in card.servers:
        yield f"  {server.name}", f"{server.clients:,}: {_format_shares(server.counts)}"
    if card.duplicates:
        rows, distinct = card.duplicates["rows"], card.duplicates["distinct"]
        yield "rows", f"{rows:,}, {distinct:,} distinct"
        yield "duplicates", str(card.duplicates["policy"])
    if card.missing:
        total = sum(card.missing["counts"].values())
        yield "missing", f"{total:,} values, policy: {card.missing['policy']}"
    if card.bounds:
        yield "bounds", f"{_format_bounds(card.bounds)}: {card.bounds.why}"
        yield "clipped", _format_percent(card.bounds.clipped)
    for file in card.files:
        yield "file", f"{file.file}: {file.title}, {file.url}"
        if file.sha256:
            yield "  SHA-256", f"{file.sha256} (decompressed)"
            yield "  origin", str(file.origin)
        yield "  licence", file.licence
        yield "  citation", file.citation
    for note in card.notes:
        yield "note", note


def _format_shares(counts: Mapping[str, int]) -> str:
    total = max(sum(counts.values()), 1)
    shares = (f"{name} {n:,} ({100 * n / total:.1f} %)" for name, n in counts.items())
    return ", ".join(shares)


def _format_bounds(bounds: PublicBounds) -> str:
    return f"[{bounds.lower:g}, {bounds.upper:g}]"


def _format_percent(share: float) -> str:
    return "< 0.01 %" if 0 < share < 0.0001 else f"{100 * share:.2f} %"
