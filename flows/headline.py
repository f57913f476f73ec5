"""What the run that stands in MLflow's list says: the main numbers of a whole run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from curvote.run.history import RunRecord
from curvote.run.plan.step import Cell
from flows.cells import Metrics, Score, X, axes, line, serves, step

# Name, value, and the place on the x-axis.
Point = tuple[str, float, int]
Lines = dict[Cell, list[Score]]

# No report or vote comes from them: they do not count in N.
_APART = ("clients.public", "clients.test")


@dataclass(frozen=True)
class Headline:
    """Numbers with their steps, the ``cell`` that stands for all, and two short texts.

    ``title`` is the number that MLflow's list shows, ``words`` tell it for each step.
    """

    cell: Cell | None = None
    points: tuple[Point, ...] = ()
    title: str = ""
    words: str = ""

    @property
    def names(self) -> list[str]:
        """The names of the numbers, the main ones first."""
        return list(dict.fromkeys(name for name, _, _ in self.points))


def of_scores(scores: Sequence[Score]) -> Headline:
    """Return the headline of a study: the main method along the x-axis.

    Of several learners or settings it is the one that the pipeline states first, at
    the latest arrival: chosen before any result, so that runs compare like with like.
    The others stand beside it under longer names, and so do the references.
    """
    lines = _lines(scores)
    if not lines:
        return Headline()
    main = next(iter(lines.values()))
    cells = [score.cell for score in main]
    points = (*_points(lines), *_beside(scores, cells[0]), *_places(cells))
    told = ", ".join(f"{score.shown}{_at(score.cell)}" for score in main)
    title = f"{main[-1].called} {main[-1].shown}"
    words = f"{main[0].metric}, {main[0].called}: {told}"
    return Headline(cells[-1], tuple(dict.fromkeys(points)), title, words)


def of_outcomes(outcomes: Mapping[Cell, Metrics]) -> Headline:
    """Return the headline of a release: what is known of its first cell."""
    for cell, known in outcomes.items():
        points = [(name, value, step(cell)) for name, value in known.items()]
        words = {name: f"{name} {value:.4g}" for name, value in known.items()}
        estimated = [word for name, word in words.items() if f"{name}_se" in known]
        title = [*estimated, *words.values()][0]
        told = ", ".join(words.values())
        return Headline(cell, (*points, *_places([cell])), title, told)
    return Headline()


def main_scores(scores: Iterable[Score]) -> list[Score]:
    """Return the score of each cell's main method, cells in their order."""
    known = [s for s in scores if s.rank is not None and not s.group]
    found: dict[Cell, Score] = {}
    for score in sorted(known, key=lambda score: score.rank or 0):
        found.setdefault(score.cell, score)
    return [found[cell] for cell in dict.fromkeys(score.cell for score in known)]


def _lines(scores: Iterable[Score]) -> Lines:
    """Return the main scores along the x-axis, the line that stands for all first."""
    found: Lines = {}
    for score in main_scores(scores):
        found.setdefault(line(score.cell), []).append(score)
    order = dict.fromkeys((*_representative(found), *found))
    return {one: sorted(found[one], key=lambda s: step(s.cell)) for one in order}


def _representative(lines: Iterable[Cell]) -> list[Cell]:
    """Return the first line; of those that only numbers tell apart, the latest."""
    alike = [one for one in lines if _kinds(one)[0] == _kinds(next(iter(lines)))[0]]
    return sorted(alike, key=lambda one: _kinds(one)[1])[-1:]


def _kinds(cell: Cell) -> tuple[dict[str, str], list[float]]:
    """Return the words and the numbers among a cell's coordinates."""
    known = axes(cell)
    words = {k: v for k, v in known.items() if isinstance(v, str)}
    return words, [v for k, v in known.items() if k not in words]


def _points(lines: Lines) -> Iterator[Point]:
    """Yield every line; what has no place on the x-axis holds at each."""
    main = next(iter(lines.values()))
    for name, scores in _named(lines).items():
        for score in scores:
            steps = [step(s.cell) for s in ([score] if X in axes(score.cell) else main)]
            for metric, value in score.metrics(name).items():
                yield from ((metric, value, at) for at in steps)


def _named(lines: Lines) -> dict[str, list[Score]]:
    """Return the lines by their methods' names; a second one by what is its own."""
    named: dict[str, list[Score]] = {}
    first = axes(next(iter(lines)))
    for cell, scores in lines.items():
        name = scores[0].called
        apart = {k: v for k, v in axes(cell).items() if v not in (first.get(k), name)}
        own = [v if isinstance(v, str) else f"{k}-{v:g}" for k, v in apart.items()]
        named[".".join([name, *own]) if name in named else name] = scores
    return named


def _beside(scores: Iterable[Score], main: Cell) -> Iterator[Point]:
    """Yield what the line of a cell is held against."""
    for score in scores:
        if score.reference and not score.group and serves(line(score.cell), line(main)):
            yield f"{score.metric}.{score.method}", score.value, step(score.cell)


def _places(cells: Iterable[Cell]) -> Iterator[Point]:
    """Yield what the steps stand for, so that a chart can be drawn against it."""
    for cell in cells:
        if X in axes(cell):
            yield X, axes(cell)[X], step(cell)


def _at(cell: Cell) -> str:
    return f" at {X} {axes(cell)[X]:g}" if X in axes(cell) else ""


def effort(record: RunRecord) -> dict[str, float]:
    """Return how long a run took in seconds, and the share of steps it reused."""
    started = datetime.fromisoformat(record.started)
    finished = datetime.fromisoformat(record.finished or record.started)
    reused = [each["action"] == "reuse" for each in record.steps]
    seconds = (finished - started).total_seconds()
    return {"duration": seconds, "reused": sum(reused) / max(1, len(reused))}


def sizes(
    record: RunRecord, read: Mapping[str, str], facts: Mapping[str, Any]
) -> dict[str, str]:
    """Return N (who takes part in learning), d and the replicates, where known."""
    clients = {k: v for k, v in read.items() if k.startswith("clients.")}
    n = sum(int(v) for k, v in clients.items() if k not in _APART and v.isdigit())
    known = {"N": n, "d": facts.get("d"), "replicates": record.config.get("replicates")}
    return {name: str(value) for name, value in known.items() if value}


def title(record: RunRecord, headline: Headline) -> str:
    """Return a run's name: its number and what was overridden; else its id."""
    words = ", ".join((headline.title, *record.overrides))
    return f"{words}{_at(headline.cell)}" if headline.cell else record.id


def note(record: RunRecord, headline: Headline) -> str:
    """Return the description that MLflow shows of a run, in Markdown."""
    return (
        f"{headline.words}\n\nRun `{record.id}`: `{command(record)}`. The headline is"
        f" that of the cell {headline.cell}; other cells are runs below this one. Where"
        f" a metric depends on {X}, its step is 1000 times {X}."
    )


def command(record: RunRecord) -> str:
    """Return what the user typed, as far as it is known."""
    overrides = (f" --set {override}" for override in record.overrides)
    return f"curvote run {record.pipeline}{''.join(overrides)}"
