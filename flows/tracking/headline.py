"""Headline of a run in MLflow: the main numbers of the whole run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from curvote.chain.axis import Cell
from curvote.chain.measure import Metric
from curvote.chain.system import Part
from curvote.flows.tracking.cells import Metrics, Score, axis_step, load_scores, x_axis
from curvote.pipeline.run.results import declared_rows, main_score_index
from curvote.pipeline.store.records import RunRecord

# Name, value, and the place on the x-axis.
Point = tuple[str, float, int]
Lines = dict[Cell, list[Score]]

# No report or vote comes from them: they do not count in N.
_NOT_LEARNING = ("clients.public", "clients.test")


@dataclass(frozen=True)
class Headline:
    """The main numbers with steps, the main ``cell``, and two short texts.

    ``metric`` is that of the numbers, of a study, ``x`` the axis that steps stand for.
    ``run_title`` is the number that MLflow's list shows, ``summary_text`` tell it for
    each step.
    """

    cell: Cell = field(default_factory=Cell)
    metric: Metric | None = None
    x: str = ""
    points: tuple[Point, ...] = ()
    title: str = ""
    summary_text: str = ""

    @property
    def metric_names(self) -> list[str]:
        """The names of the numbers, the main ones first, without the x-axis."""
        return list(dict.fromkeys(n for n, _, _ in self.points if n != self.x))


def study_headline(record: RunRecord, rows: Iterable[Mapping[str, Any]]) -> Headline:
    """Return the headline of a study, whose main score `main_score` chooses."""
    rows_declared = declared_rows(record, rows)
    place = main_score_index(record, rows_declared)
    if place is None:
        return Headline()
    scores = load_scores(record, rows_declared)
    return scores_headline(scores, scores[place])


def scores_headline(scores: Sequence[Score], main: Score) -> Headline:
    """Return the headline for the ``main`` score and the scores beside it.

    Other learners and settings stand beside it under longer names, and so do the
    references.
    """
    lines = _main_lines(scores, main.line)
    line = next(iter(lines.values()))
    main_points, *other_series = _line_points(lines)
    # MLflow's list shows the last step of a line: the one number is one of its own.
    points = [
        ("main", main.value, main.step),
        *main_points,
        *_reference_points(scores, main),
    ]
    points += _axis_points([entry.cell for entry in line], main.x)
    points += (point for other in other_series for point in other)
    texts = (f"{score.formatted} ({score.place.words or 'all'})" for score in line)
    place = [main.place.words, str(main.cell["learner"] or "")]
    title = (
        f"{main.series_name} {main.formatted}"
        f" ({', '.join(filter(None, place)) or 'all'})"
    )
    words = f"{title}; {main.metric.name}: {', '.join(texts)}"
    points = list(dict.fromkeys(points))
    return Headline(main.cell, main.metric, main.x, tuple(points), title, words)


def outcomes_headline(
    outcomes: Mapping[Cell, Metrics], parts: Mapping[Cell, Part]
) -> Headline:
    """Return the headline of a release: the values of its first cell."""
    for cell, values in outcomes.items():
        x = x_axis(parts[cell])
        points = [(name, value, axis_step(cell, x)) for name, value in values.items()]
        words = {name: f"{name} {value:.4g}" for name, value in values.items()}
        estimated = [word for name, word in words.items() if f"{name}_se" in values]
        title = [*estimated, *words.values()][0]
        points += _axis_points([cell], x)
        return Headline(cell, None, x, tuple(points), title, ", ".join(words.values()))
    return Headline()


def main_method_scores(scores: Iterable[Score]) -> list[Score]:
    """Return the scores of each cell's main method, cells in order.

    A cell of which nothing is known as a whole has one for each of its groups.
    """
    ranked = [score for score in scores if score.rank is not None]
    ungrouped = {score.cell for score in ranked if not score.group}
    ranked = [
        score for score in ranked if not (score.group and score.cell in ungrouped)
    ]
    best: dict[tuple[Cell, str], Score] = {}
    for score in sorted(ranked, key=lambda score: score.rank or ()):
        best.setdefault((score.cell, score.group), score)
    places = dict.fromkeys((score.cell, score.group) for score in ranked)
    return [best[place] for place in places]


def _main_lines(scores: Iterable[Score], first: Cell) -> Lines:
    """Return the main scores along the x-axis, the run's main line first."""
    by_line: Lines = {first: []}
    for score in main_method_scores(scores):
        by_line.setdefault(score.line, []).append(score)
    return {
        line: sorted(line_scores, key=lambda s: s.step)
        for line, line_scores in by_line.items()
    }


def _line_points(lines: Lines) -> Iterator[list[Point]]:
    """Yield the points of every line; scores without a step hold at each."""
    main = next(iter(lines.values()))
    for name, scores in _named_lines(lines):
        yield [
            (metric, value, placed.step)
            for score in scores
            for metric, value in score.to_metrics(name).items()
            for placed in ([score] if score.place.pairs else main)
        ]


def _named_lines(lines: Lines) -> Iterator[tuple[str, list[Score]]]:
    """Yield the lines with distinct names."""
    used: set[tuple[str, str]] = set()
    first = next(iter(lines))
    for line, scores in lines.items():
        name, group = scores[0].series_name, scores[0].group
        if (name, group) in used:
            pairs = line.with_values(group=None).pairs
            apart = [pair for pair in pairs if pair[1] not in (first[pair[0]], name)]
            name = ".".join([name, *map(_pair_text, apart)])
        used.add((name, group))
        yield name, scores


def _pair_text(pair: tuple[str, Any]) -> str:
    axis, value = pair
    return value if isinstance(value, str) else f"{axis}-{value:g}"


def _reference_points(scores: Iterable[Score], main: Score) -> Iterator[Point]:
    for score in scores:
        beside = score.reference and not score.group and score.metric == main.metric
        if beside and score.line.serves(main.line):
            name, *_ = score.to_metrics()
            yield name, score.value, score.step


def _axis_points(cells: Iterable[Cell], x: str) -> Iterator[Point]:
    """Yield the values of the x-axis at each step, as a metric."""
    for cell in cells:
        if isinstance(cell[x], float | int):
            yield x, float(cell[x]), axis_step(cell, x)


def run_effort(record: RunRecord) -> dict[str, float]:
    """Return a run's duration in seconds, and the share of reused steps.

    A step that copies stored replicates drew none either.
    """
    started = datetime.fromisoformat(record.started)
    finished = datetime.fromisoformat(record.finished or record.started)
    reused = [entry["action"] in {"reuse", "copy"} for entry in record.steps]
    seconds = (finished - started).total_seconds()
    return {"duration": seconds, "reused": sum(reused) / max(1, len(reused))}


def run_sizes(
    record: RunRecord, read: Mapping[str, str], facts: Mapping[str, Any]
) -> dict[str, str]:
    """Return N (learning clients or records), d and replicates, if known.

    Where releases are about tables N are the records, as a stage has told.
    """
    clients = {k: v for k, v in read.items() if k.startswith("clients.")}
    n = sum(
        int(v) for k, v in clients.items() if k not in _NOT_LEARNING and v.isdigit()
    )
    sizes_known = {
        "N": n or facts.get("about"),
        "d": facts.get("d"),
        "replicates": record.config.get("replicates"),
    }
    return {name: str(value) for name, value in sizes_known.items() if value}


def run_title(record: RunRecord, headline: Headline) -> str:
    """Return a run's name: its headline and overrides, or else its id."""
    if not headline.title:
        return record.id
    return ", ".join((headline.title, *record.overrides))


def run_description(record: RunRecord, headline: Headline) -> str:
    """Return the Markdown description of a run in MLflow."""
    paragraphs = [f"Run `{record.id}`: `{run_command(record)}`."]
    if headline.points:
        cell = f"The cell is {headline.cell.words}; the others are runs below this one."
        steps = f"Steps are {headline.x}: fractions times 1000, counts as they are."
        paragraphs = [headline.summary_text, *paragraphs, cell, steps]
    return "\n\n".join(paragraphs)


def run_command(record: RunRecord) -> str:
    """Return the command of a run, as far as it is known."""
    overrides = (f" --set {override}" for override in record.overrides)
    return f"curvote run {record.pipeline}{''.join(overrides)}"
