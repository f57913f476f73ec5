"""Cells of a run for MLflow and tables: scores, parameters, keys and steps.

Whatever a system says of itself (its axes, metrics and methods) is asked for here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from curvote.base.errors import UserError
from curvote.chain.axis import Cell
from curvote.chain.lookup import find_system
from curvote.chain.measure import Metric
from curvote.chain.reputation import Reputation
from curvote.chain.system import Part, System
from curvote.pipeline.config import settings
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import flat_items
from curvote.pipeline.run import results
from curvote.pipeline.run.results import declared_rows, main_score_index
from curvote.pipeline.run.run_object import missing_stages
from curvote.pipeline.store import records
from curvote.pipeline.store.artifacts import Artifact, artifact
from curvote.pipeline.store.locations import artifact_exists
from curvote.pipeline.store.records import RunRecord

Row = Mapping[str, Any]
Metrics = dict[str, float]

_MAX_LENGTH = 250  # letters of a parameter


@dataclass(frozen=True)
class Score:
    """A row of ``scores --json`` with its metric, axis and rank.

    ``x`` is the axis that stands on the x-axis. ``rank`` is the place of method and
    metric among those that may stand in a headline (of a cell the first that it has
    does), None where the method is none of them. ``series_name`` is one name for
    whatever takes that place in the cells of a line, and ``rule`` what was asked to
    take one. A ``reference`` is what others are held against. ``beside`` are the values
    of ``further`` measures and their standard errors, by name.
    """

    cell: Cell
    x: str
    metric: Metric
    method: str
    value: float
    se: float | None
    group: str
    rank: tuple[int, int] | None
    series_name: str
    reference: bool
    rule: str = ""
    beside: dict[str, float | None] = field(default_factory=dict, hash=False)
    further: dict[str, Metric] = field(default_factory=dict, hash=False)

    def score_of(self, name: str) -> Score | None:
        """Return the score of a metric: this one, or one beside it; None for others."""
        if name == self.metric.name:
            return self
        metric, value = self.further.get(name), self.beside.get(name)
        if metric is None or value is None:
            return None
        se = self.beside[metric.columns[1]]
        return replace(self, metric=metric, value=value, se=se)

    @property
    def group_label(self) -> str:
        """The group of the score: "group 2", or "class sh"; "" for all."""
        return f"{self.metric.group_kind or 'group'} {self.group}" if self.group else ""

    @property
    def step(self) -> int:
        """The step on the x-axis."""
        return axis_step(self.cell, self.x)

    @property
    def line(self) -> Cell:
        """The cell without its place on the x-axis, with the score's group."""
        return self.cell.with_values(**{self.x: None, "group": self.group or None})

    @property
    def place(self) -> Cell:
        """The place of the cell on the x-axis, empty without privacy."""
        return Cell.from_mapping({self.x: self.cell[self.x]})

    @property
    def with_error(self) -> str:
        """The value and its standard error, in the metric's display."""
        factor, digits = (100, 2) if self.metric.display == "percent" else (1, 3)
        values = (factor * v for v in (self.value, self.se) if v is not None)
        return " ± ".join(f"{value:.{digits}f}" for value in values)

    @property
    def formatted(self) -> str:
        """The value in its metric's display: 12.7 %."""
        percent = self.metric.display == "percent"
        return f"{100 * self.value:.1f} %" if percent else f"{self.value:.3g}"

    def to_metrics(self, *names: str) -> Metrics:
        """Return value and standard error as MLflow metrics, by metric and name.

        The name is the method's where no other is given.
        """
        group = self.group_label.replace(" ", "-", 1)
        named_values = {self.metric.name: self.value, f"{self.metric.name}_se": self.se}
        return {
            _mlflow_name(".".join(filter(None, (metric, name, group)))): float(value)
            for metric, value in (named_values | self.beside).items()
            for name in names or (self.method,)
            if value is not None and math.isfinite(value)
        }


def load_scores(record: RunRecord, rows: Iterable[Row]) -> list[Score]:
    """Return the declared rows of ``scores --json`` as scores, in order."""
    parts = list(settings.labelled_parts(record.config))
    names = {axis.name for _, part in parts for axis in _part_system(part).axes}
    scores = []
    for row in declared_rows(record, rows):
        named = {name: row[name] for name in row if name in names}
        where = {"protocol": row["protocol"]}
        where["setting"] = settings.setting_name(row.get("setting", {}))
        cell = Cell.from_mapping(where | named)
        part = settings.find_part(parts, cell)
        member, method = _part_system(part), row["method"]
        place = [metric.name for metric in member.metrics].index(row["metric"])
        rank = (member.main.index(method), place) if method in member.main else None
        further = [m for m in member.metrics if m.spread and m.beside == row["metric"]]
        # A series is called by its method, or by a protocol of several methods.
        series, label = method, str(part.settings.called)
        if rank is not None:
            plain = len(member.main) == 1 and label == member.name
            series = member.main[0] if plain else label
        scores.append(
            Score(
                cell=cell,
                x=member.x.name,
                metric=member.metrics[place],
                method=method,
                value=row["value"],
                se=row["se"],
                group=row.get("group", ""),
                rank=rank,
                series_name=series,
                reference=any(m.reference for m in member.methods if m.name == method),
                rule=part.rule if rank is not None else "",
                beside={name: row.get(name) for m in further for name in m.columns},
                further={metric.name: metric for metric in further},
            )
        )
    return scores


def _part_system(part: Part) -> System:
    return find_system(part.settings.protocol)


def _mlflow_name(name: str) -> str:
    """Return a name with only the characters that MLflow allows."""
    return re.sub(r"[^\w. -]", "-", name)


def parts_by_cell(record: RunRecord, cells: Iterable[Cell]) -> dict[Cell, Part]:
    """Return the part of a run's configuration for each cell."""
    parts = list(settings.labelled_parts(record.config))
    return {cell: settings.find_part(parts, cell) for cell in cells}


def x_axis(part: Part) -> str:
    """Return the name of the x-axis of a part's figures."""
    return _part_system(part).x.name


def axis_step(cell: Cell, x: str) -> int:
    """Return a cell's place on the x-axis as a whole number for MLflow.

    Privacy levels are fractions, so a step is a thousandth of epsilon: 500 is 0.5.
    Counts are steps as they are. Without privacy there is no place: 0.
    """
    value = cell[x]
    if isinstance(value, float):
        return round(1000 * value)
    return value if isinstance(value, int) else 0


def metrics_by_cell(scores: Iterable[Score]) -> dict[Cell, Metrics]:
    """Return the metrics of each child run: its own, and shared ones.

    What holds for several cells, such as the majority's for all learners, is copied
    into each; it gets a child of its own only where there is none. The main method
    comes first: MLflow's comparison opens with that metric.
    """
    by_own_cell: dict[Cell, Metrics] = {}
    for score in sorted(scores, key=lambda score: score.rank is None):
        names = dict.fromkeys((score.method, score.series_name))
        by_own_cell.setdefault(score.cell, {}).update(score.to_metrics(*names))
    every: dict[Cell, Metrics] = {}
    for cell, metrics in by_own_cell.items():
        if not any(cell != other and cell.serves(other) for other in by_own_cell):
            wide = (by_own_cell[other] for other in by_own_cell if other.serves(cell))
            every[cell] = metrics | _merge_mappings(wide)
    return every


def _merge_mappings(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for part in parts for name, value in part.items()}


def chosen_by_rule(part: Part) -> dict[str, str]:
    """Return a rule's choice and its reason, if there was one."""
    return {"chosen": part.method, "why": part.reason} if part.reason else {}


def stage_keys(record: RunRecord, cell: Cell) -> dict[str, str]:
    """Return the keys of all stages from which ``cell`` was computed."""
    return {step["stage"]: step["key"] for step in _serving_steps(record, cell)}


def _serving_steps(record: RunRecord, cell: Cell) -> list[dict[str, Any]]:
    """Return the steps that serve a cell, the narrowest of a stage last."""
    steps = [(Cell.from_mapping(step["cell"]), step) for step in record.steps]
    serving = [(place, step) for place, step in steps if place.serves(cell)]
    return [step for _, step in sorted(serving, key=lambda pair: len(pair[0].pairs))]


def cell_artifacts(project: Project, record: RunRecord, cell: Cell) -> list[Artifact]:
    """Return the existing artifacts from which a cell was computed."""
    steps = _serving_steps(record, cell)
    every = (artifact(project, step["stage"], step["key"]) for step in steps)
    return [candidate for candidate in every if artifact_exists(candidate.path)]


def stage_facts(stored: Iterable[Artifact]) -> dict[str, Any]:
    """Return what the stages of some artifacts recorded, by name."""
    return _merge_mappings(source.metadata for source in stored)


def cell_params(
    record: RunRecord, cell: Cell, stored: Iterable[Artifact]
) -> dict[str, str]:
    """Return the settings read for a cell, by their names for ``--set``.

    ``stored`` are the cell's artifacts: their manifests hold what their stages read.
    """
    read = _merge_mappings(source.manifest["components"]["params"] for source in stored)
    # A release's number is no setting.
    setting_names = {*record.config, *cell.to_json()}
    settings_read = {
        name: value
        for path, value in flat_items(read)
        for name in [".".join(path)]
        if value is not None
        and value != {}
        and path[0].partition(".")[0] in setting_names
        and name.rpartition(".")[2] != "label"
    }
    texts: dict[str, str] = {}
    for name, value in (settings_read | cell.to_json()).items():
        text = str(value).removesuffix(".0") if isinstance(value, float) else str(value)
        texts[_mlflow_name(name)] = text  # a column's name may hold any sign
    return {name: text for name, text in texts.items() if len(text) <= _MAX_LENGTH}


# Name, value, and the place on the x-axis.
Point = tuple[str, float, int]

# No report or vote comes from them: they do not count in N.
_NOT_LEARNING = ("clients.public", "clients.test", "clients.judge")


@dataclass(frozen=True)
class Headline:
    """The main numbers with steps, the main ``cell``, and two short texts.

    ``metric`` is that of the numbers, of a study, ``x`` the axis that steps stand for.
    ``run_title`` is the number that MLflow's list shows, ``summary_text`` tell it for
    each step. Of a deployed model's ``reputation`` steps are looks and windows.
    """

    cell: Cell = field(default_factory=Cell)
    metric: Metric | None = None
    x: str = ""
    points: tuple[Point, ...] = ()
    title: str = ""
    summary_text: str = ""
    reputation: Reputation | None = None

    @property
    def metric_names(self) -> list[str]:
        """The names of the numbers, the main ones first, without the x-axis."""
        return list(dict.fromkeys(n for n, _, _ in self.points if n != self.x))


def study_headline(record: RunRecord, rows: Iterable[Mapping[str, Any]]) -> Headline:
    """Return the headline of a study, whose main score `main_score_index` chooses.

    Other learners and settings stand beside it under longer names, and so do the
    references.
    """
    rows_declared = declared_rows(record, rows)
    place = main_score_index(record, rows_declared)
    if place is None:
        return Headline()
    scores = load_scores(record, rows_declared)
    main = scores[place]
    # The main scores along the x-axis, the run's main line first.
    by_line: dict[Cell, list[Score]] = {main.line: []}
    for score in main_method_scores(scores):
        by_line.setdefault(score.line, []).append(score)
    lines = {at: sorted(group, key=lambda s: s.step) for at, group in by_line.items()}
    line = next(iter(lines.values()))
    # The points of every line, by distinct names; scores without a step hold at each.
    series: list[list[Point]] = []
    used: set[tuple[str, str]] = set()
    for at, line_scores in lines.items():
        name, group = line_scores[0].series_name, line_scores[0].group
        if (name, group) in used:
            pairs = at.with_values(group=None).pairs
            apart = [(axis, v) for axis, v in pairs if v not in (main.line[axis], name)]
            words = (v if isinstance(v, str) else f"{axis}-{v:g}" for axis, v in apart)
            name = ".".join([name, *words])
        used.add((name, group))
        series.append(
            [
                (metric, value, placed.step)
                for score in line_scores
                for metric, value in score.to_metrics(name).items()
                for placed in ([score] if score.place.pairs else line)
            ]
        )
    # MLflow's list shows the last step of a line: the one number is one of its own.
    points = [("main", main.value, main.step), *series[0]]
    for score in scores:
        beside = score.reference and not score.group and score.metric == main.metric
        if beside and score.line.serves(main.line):
            name, *_ = score.to_metrics()
            points.append((name, score.value, score.step))
    points += _axis_points([entry.cell for entry in line], main.x)
    points += (point for other in series[1:] for point in other)
    texts = (f"{score.formatted} ({score.place.words or 'all'})" for score in line)
    named = [main.place.words, str(main.cell["learner"] or "")]
    where = ", ".join(filter(None, named)) or "all"
    title = f"{main.series_name} {main.formatted} ({where})"
    summary = f"{title}; {main.metric.name}: {', '.join(texts)}"
    points = list(dict.fromkeys(points))
    return Headline(main.cell, main.metric, main.x, tuple(points), title, summary)


def outcome_texts(project: Project, record: RunRecord) -> dict[Cell, dict[str, str]]:
    """Return each cell's production metrics as text; how a model stands, if asked."""
    outcomes = results.production_outcomes(project, record)
    texts = {cell: format_outcome(values) for cell, values in outcomes.items()}
    reputations = results.reputations(project, record)
    return texts | {
        cell: reputation.texts() for cell, reputation in reputations.items()
    }


def format_outcome(values: Mapping[str, float]) -> dict[str, str]:
    """Return a cell's production metrics as text, shares with errors or intervals."""
    ends = ("_se", "_low", "_high")
    counts = {n: f"{v:,.0f}" for n, v in values.items() if not n.endswith(ends)}
    shares = {
        name: f"{100 * values[name]:.1f} ± {100 * values[f'{name}_se']:.1f} %"
        for name in counts
        if f"{name}_se" in values
    }
    for name in (name for name in counts if f"{name}_low" in values):
        value, low, high = (100 * values[f"{name}{end}"] for end in ("", *ends[1:]))
        shares[name] = f"{value:.1f} % ({low:.1f} to {high:.1f})"
    return counts | shares


def main_number(project: Project, record: RunRecord) -> str:
    """Return the main number of a completed run, as its page states it.

    That of a study is kept beside the record, so that lists need not read the scores.
    """
    stages = results.scoring_stages(record)
    if missing_stages(project, record, stages):
        return "gone (gc)"
    try:
        if record.config.get("mode") != "production":
            rows = results.mean_scores(project, record)
            main = study_headline(record, rows).title
            with suppress(UserError):  # nothing can be written: it is read again
                records.keep_headline(project, record.id, main, stages)
            return main
        for reputation in results.reputations(
            project, record
        ).values():  # the first cell
            return f"{reputation.title}, by noised messages"
        outcomes = results.production_outcomes(project, record)
        for values in outcomes.values():
            words = format_outcome(values)
            name = next((n for n in words if f"{n}_se" in values), next(iter(words)))
            return f"{name} {words[name]}, by noised messages"
    except UserError:  # altered, gone, or of an earlier version
        return "not readable"
    return "- (messages tell nothing of it)"


def outcomes_headline(
    outcomes: Mapping[Cell, Metrics],
    parts: Mapping[Cell, Part],
    reputations: Mapping[Cell, Reputation] | None = None,
) -> Headline:
    """Return the headline of a release: the values of its first cell."""
    for cell, reputation in (reputations or {}).items():
        series, title = tuple(reputation.points()), reputation.title
        return Headline(cell, None, "", series, title, title, reputation)
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
    ranked = [s for s in ranked if not (s.group and s.cell in ungrouped)]
    best: dict[tuple[Cell, str], Score] = {}
    for score in sorted(ranked, key=lambda score: score.rank or ()):
        best.setdefault((score.cell, score.group), score)
    places = dict.fromkeys((score.cell, score.group) for score in ranked)
    return [best[place] for place in places]


def _axis_points(cells: Iterable[Cell], x: str) -> Iterator[Point]:
    for cell in cells:
        if isinstance(cell[x], float | int):
            yield x, float(cell[x]), axis_step(cell, x)


def run_sizes(
    record: RunRecord, read: Mapping[str, str], facts: Mapping[str, Any]
) -> dict[str, str]:
    """Return N (learning clients or records), d and replicates, if known.

    Where releases are about tables N are the records, as a stage has told.
    """
    clients = {k: v for k, v in read.items() if k.startswith("clients.")}
    learning = (v for k, v in clients.items() if k not in _NOT_LEARNING)
    sizes = {
        "N": sum(int(v) for v in learning if v.isdigit()) or facts.get("about"),
        "d": facts.get("d"),
        "replicates": record.config.get("replicates"),
    }
    return {name: str(value) for name, value in sizes.items() if value}


def run_command(record: RunRecord) -> str:
    """Return the command of a run, as far as it is known."""
    overrides = (f" --set {override}" for override in record.overrides)
    return f"curvote run {record.pipeline}{''.join(overrides)}"
