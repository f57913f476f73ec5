"""What the run that stands in MLflow's list says: the main numbers of a whole run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from curvote.chain.axis import Cell
from curvote.chain.measure import Metric
from curvote.chain.system import Part
from curvote.flows.tracking.cells import Metrics, Score, scores_of, step, x_of
from curvote.run.history import RunRecord
from curvote.run.summary import declared, main_score

# Name, value, and the place on the x-axis.
Point = tuple[str, float, int]
Lines = dict[Cell, list[Score]]

# No report or vote comes from them: they do not count in N.
_APART = ("clients.public", "clients.test")


@dataclass(frozen=True)
class Headline:
    """Numbers with their steps, the ``cell`` that stands for all, and two short texts.

    ``metric`` is that of the numbers, of a study, ``x`` the axis that steps stand for.
    ``title`` is the number that MLflow's list shows, ``words`` tell it for each step.
    """

    cell: Cell = field(default_factory=Cell)
    metric: Metric | None = None
    x: str = ""
    points: tuple[Point, ...] = ()
    title: str = ""
    words: str = ""

    @property
    def names(self) -> list[str]:
        """The names of the numbers, the main ones first, without the x-axis."""
        return list(dict.fromkeys(n for n, _, _ in self.points if n != self.x))


def of_study(record: RunRecord, rows: Iterable[Mapping[str, Any]]) -> Headline:
    """Return the headline of a study's ``rows``, as `main_score` chooses it."""
    own = declared(record, rows)
    place = main_score(record, own)
    if place is None:
        return Headline()
    scores = scores_of(record, own)
    return of_scores(scores, scores[place])


def of_scores(scores: Sequence[Score], main: Score) -> Headline:
    """Return the headline of a study: the line of the ``main`` score, and its own cell.

    Other learners and settings stand beside it under longer names, and so do the
    references.
    """
    lines = _lines(scores, main.line)
    line = next(iter(lines.values()))
    own, *others = _points(lines)
    # MLflow's list shows the last step of a line: the one number is one of its own.
    points = [("main", main.value, main.step), *own, *_beside(scores, main)]
    points += _places([each.cell for each in line], main.x)
    points += (point for other in others for point in other)
    told = (f"{score.shown} ({score.place.words or 'all'})" for score in line)
    place = [main.place.words, str(main.cell["learner"] or "")]
    title = f"{main.called} {main.shown} ({', '.join(filter(None, place)) or 'all'})"
    words = f"{title}; {main.metric.name}: {', '.join(told)}"
    points = list(dict.fromkeys(points))
    return Headline(main.cell, main.metric, main.x, tuple(points), title, words)


def of_outcomes(
    outcomes: Mapping[Cell, Metrics], parts: Mapping[Cell, Part]
) -> Headline:
    """Return the headline of a release: what is known of its first cell."""
    for cell, known in outcomes.items():
        x = x_of(parts[cell])
        points = [(name, value, step(cell, x)) for name, value in known.items()]
        words = {name: f"{name} {value:.4g}" for name, value in known.items()}
        estimated = [word for name, word in words.items() if f"{name}_se" in known]
        title = [*estimated, *words.values()][0]
        points += _places([cell], x)
        return Headline(cell, None, x, tuple(points), title, ", ".join(words.values()))
    return Headline()


def main_scores(scores: Iterable[Score]) -> list[Score]:
    """Return the score of each cell's main method, cells in their order.

    A cell of which nothing is known as a whole has one for each of its groups.
    """
    known = [score for score in scores if score.rank is not None]
    whole = {score.cell for score in known if not score.group}
    known = [score for score in known if not (score.group and score.cell in whole)]
    found: dict[tuple[Cell, str], Score] = {}
    for score in sorted(known, key=lambda score: score.rank or ()):
        found.setdefault((score.cell, score.group), score)
    places = dict.fromkeys((score.cell, score.group) for score in known)
    return [found[place] for place in places]


def _lines(scores: Iterable[Score], first: Cell) -> Lines:
    """Return the main scores along the x-axis, the line that stands for all first."""
    found: Lines = {first: []}
    for score in main_scores(scores):
        found.setdefault(score.line, []).append(score)
    return {line: sorted(own, key=lambda s: s.step) for line, own in found.items()}


def _points(lines: Lines) -> Iterator[list[Point]]:
    """Yield every line; what has no place on the x-axis holds at each."""
    main = next(iter(lines.values()))
    for name, scores in _named(lines):
        yield [
            (metric, value, placed.step)
            for score in scores
            for metric, value in score.metrics(name).items()
            for placed in ([score] if score.place.pairs else main)
        ]


def _named(lines: Lines) -> Iterator[tuple[str, list[Score]]]:
    """Yield the lines by their methods' names; a second one by what is its own."""
    taken: set[tuple[str, str]] = set()
    first = next(iter(lines))
    for line, scores in lines.items():
        name, group = scores[0].called, scores[0].group
        if (name, group) in taken:
            own = line.with_(group=None).pairs
            apart = [pair for pair in own if pair[1] not in (first[pair[0]], name)]
            name = ".".join([name, *map(_word, apart)])
        taken.add((name, group))
        yield name, scores


def _word(pair: tuple[str, Any]) -> str:
    axis, value = pair
    return value if isinstance(value, str) else f"{axis}-{value:g}"


def _beside(scores: Iterable[Score], main: Score) -> Iterator[Point]:
    for score in scores:
        beside = score.reference and not score.group and score.metric == main.metric
        if beside and score.line.serves(main.line):
            name, *_ = score.metrics()
            yield name, score.value, score.step


def _places(cells: Iterable[Cell], x: str) -> Iterator[Point]:
    """Yield what the steps stand for, so that a chart can be drawn against it."""
    for cell in cells:
        if isinstance(cell[x], float | int):
            yield x, float(cell[x]), step(cell, x)


def effort(record: RunRecord) -> dict[str, float]:
    """Return how long a run took in seconds, and the share of steps it reused.

    A step that copies stored replicates drew none either.
    """
    started = datetime.fromisoformat(record.started)
    finished = datetime.fromisoformat(record.finished or record.started)
    reused = [each["action"] in {"reuse", "copy"} for each in record.steps]
    seconds = (finished - started).total_seconds()
    return {"duration": seconds, "reused": sum(reused) / max(1, len(reused))}


def sizes(
    record: RunRecord, read: Mapping[str, str], facts: Mapping[str, Any]
) -> dict[str, str]:
    """Return N (who takes part in learning), d and the replicates, where known.

    Where releases are about tables N are the records, as a stage has told.
    """
    clients = {k: v for k, v in read.items() if k.startswith("clients.")}
    n = sum(int(v) for k, v in clients.items() if k not in _APART and v.isdigit())
    known = {
        "N": n or facts.get("about"),
        "d": facts.get("d"),
        "replicates": record.config.get("replicates"),
    }
    return {name: str(value) for name, value in known.items() if value}


def title(record: RunRecord, headline: Headline) -> str:
    """Return a run's name: its number and what was overridden; else its id."""
    if not headline.title:
        return record.id
    return ", ".join((headline.title, *record.overrides))


def note(record: RunRecord, headline: Headline) -> str:
    """Return the description that MLflow shows of a run, in Markdown."""
    told = [f"Run `{record.id}`: `{command(record)}`."]
    if headline.points:
        cell = f"The cell is {headline.cell.words}; the others are runs below this one."
        steps = f"Steps are {headline.x}: fractions times 1000, counts as they are."
        told = [headline.words, *told, cell, steps]
    return "\n\n".join(told)


def command(record: RunRecord) -> str:
    """Return what the user typed, as far as it is known."""
    overrides = (f" --set {override}" for override in record.overrides)
    return f"curvote run {record.pipeline}{''.join(overrides)}"
