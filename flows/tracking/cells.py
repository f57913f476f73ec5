"""Cells of a run for MLflow and tables: scores, parameters, keys and steps.

Whatever a system says of itself (its axes, metrics and methods) is asked for here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from curvote.chain.axis import Cell
from curvote.chain.lookup import find_system
from curvote.chain.measure import Metric
from curvote.chain.system import Part, System
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.settings import (
    Parts,
    find_part,
    labelled_parts,
    setting_name,
)
from curvote.pipeline.run.results import declared_rows
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
        metric = self.further.get(name)
        value = self.beside.get(name)
        if metric is None or value is None:
            return None
        return replace(
            self, metric=metric, value=value, se=self.beside[metric.columns[1]]
        )

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
    parts = list(labelled_parts(record.config))
    names = {axis.name for _, part in parts for axis in _part_system(part).axes}
    rows_declared = declared_rows(record, rows)
    return [_make_score(parts, _row_cell(row, names), row) for row in rows_declared]


def _make_score(parts: Parts, cell: Cell, row: Row) -> Score:
    part = find_part(parts, cell)
    member, method = _part_system(part), row["method"]
    place = [metric.name for metric in member.metrics].index(row["metric"])
    rank = (member.main.index(method), place) if method in member.main else None
    further = [m for m in member.metrics if m.spread and m.beside == row["metric"]]
    return Score(
        cell=cell,
        x=member.x.name,
        metric=member.metrics[place],
        method=method,
        value=row["value"],
        se=row["se"],
        group=row.get("group", ""),
        rank=rank,
        series_name=method if rank is None else _series_name(part),
        reference=any(
            candidate.reference
            for candidate in member.methods
            if candidate.name == method
        ),
        rule=part.rule if rank is not None else "",
        beside={name: row[name] for metric in further for name in metric.columns},
        further={metric.name: metric for metric in further},
    )


def _series_name(part: Part) -> str:
    """Return a series' name: its method, or a protocol of several methods."""
    member, label = _part_system(part), str(part.settings.called)
    return member.main[0] if len(member.main) == 1 and label == member.name else label


def _part_system(part: Part) -> System:
    return find_system(part.settings.protocol)


def _row_cell(row: Row, names: Iterable[str]) -> Cell:
    where = {
        "protocol": row["protocol"],
        "setting": setting_name(row.get("setting", {})),
    }
    return Cell.from_mapping(where | {name: row[name] for name in row if name in names})


def _mlflow_name(name: str) -> str:
    """Return a name with only the characters that MLflow allows."""
    return re.sub(r"[^\w. -]", "-", name)


def parts_by_cell(record: RunRecord, cells: Iterable[Cell]) -> dict[Cell, Part]:
    """Return the part of a run's configuration for each cell."""
    parts = list(labelled_parts(record.config))
    return {cell: find_part(parts, cell) for cell in cells}


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
    shared = {
        w
        for w in by_own_cell
        if any(w != cell and w.serves(cell) for cell in by_own_cell)
    }
    return {
        cell: metrics
        | _merge_mappings(
            by_own_cell[wide] for wide in by_own_cell if wide.serves(cell)
        )
        for cell, metrics in by_own_cell.items()
        if cell not in shared
    }


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
    serving = [
        step for step in record.steps if Cell.from_mapping(step["cell"]).serves(cell)
    ]
    return sorted(serving, key=lambda step: len(Cell.from_mapping(step["cell"]).pairs))


def plan_rows(record: RunRecord) -> list[dict[str, str]]:
    """Return the planned steps, as ``plan --json`` prints them."""
    return [
        entry | {"cell": str(Cell.from_mapping(entry["cell"]))}
        for entry in record.steps
    ]


def cell_artifacts(project: Project, record: RunRecord, cell: Cell) -> list[Artifact]:
    """Return the existing artifacts from which a cell was computed."""
    every = (
        artifact(project, s["stage"], s["key"]) for s in _serving_steps(record, cell)
    )
    return [candidate for candidate in every if artifact_exists(candidate.path)]


def cell_params(
    record: RunRecord, cell: Cell, stored: Iterable[Artifact]
) -> dict[str, str]:
    """Return the settings read for a cell, by their names for ``--set``.

    ``stored`` are the cell's artifacts: their manifests hold what their stages read.
    """
    read = _merge_mappings(source.manifest["components"]["params"] for source in stored)
    setting_names = {
        *record.config,
        *cell.to_json(),
    }  # a release's number is no setting
    settings_read = {
        n: v for n, v in _flat_items(read) if n.partition(".")[0] in setting_names
    }
    settings_read = {
        n: v for n, v in settings_read.items() if n.rpartition(".")[2] != "label"
    }
    every = (
        settings_read | cell.to_json()
    ).items()  # a column's name may hold any sign
    texts = {_mlflow_name(name): _param_text(value) for name, value in every}
    return {name: text for name, text in texts.items() if len(text) <= _MAX_LENGTH}


def _flat_items(
    values: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat_items(value, f"{prefix}{name}.")
        elif value is not None:
            yield prefix + name, value


def _param_text(value: Any) -> str:
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)
