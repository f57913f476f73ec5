"""Results of a completed run by cell: artifacts, outcomes, notes, models and alarms."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import count
from typing import Any

import numpy as np
import pandas as pd

from curvote.base.errors import InternalError, UserError
from curvote.chain.axis import EPSILON, REPLICATE, Cell, Value
from curvote.chain.lookup import find_system
from curvote.chain.measure import INTERVAL_ENDS, SCORES, Metric
from curvote.chain.reputation import Reputation
from curvote.chain.stage import Columns, Metadata, Place
from curvote.chain.system import Part, System
from curvote.curves.columns import RecordPredictor
from curvote.pipeline.config import settings
from curvote.pipeline.config.project import Project
from curvote.pipeline.plan.expand import cell_values, final_stages
from curvote.pipeline.store.artifacts import Artifact, artifact, checked_artifact
from curvote.pipeline.store.records import RunRecord


@dataclass(frozen=True)
class RunView:
    """One cell of a run, as its system sees it (`curvote.chain.system.View`)."""

    project: Project
    record: RunRecord
    cell: Cell
    part: Part

    @property
    def settings(self) -> Any:
        """The resolved settings of the cell's system."""
        return self.part.settings

    @property
    def system(self) -> System:
        """The system that made the cell."""
        return find_system(self.settings.protocol)

    @cached_property
    def _cell_settings(self) -> dict[str, Any]:
        return cell_values(self.settings, self.cell)

    def without(self, *axes: str) -> RunView:
        """Return the view of the wider cell that has no value on some axes."""
        return replace(self, cell=self.cell.with_values(**dict.fromkeys(axes)))

    def at(self, **values: Value) -> RunView:
        """Return the view of the narrower cell with these values on its axes."""
        return replace(self, cell=self.cell.with_values(**values))

    def place(self, replicate: int = 0) -> Place:
        """Return the index of a replicate's tables; further indices are 0."""
        return replicate, *[0] * (len(self.system.index) - 1)

    def setting(self, path: str) -> Any:
        """Return the value of a dotted key as the stages of the cell read it."""
        return settings.dotted_value(self._cell_settings, path)

    def holds(self, stage: str, table: str = "") -> bool:
        """Return whether the cell has a stage, and the stage a table."""
        serving = self.cell.most_specific(dict(self.record.stage_keys(stage)))
        return serving is not None and (
            not table or table in self.artifact(stage).manifest["tables"]
        )

    def artifact(self, stage: str) -> Artifact:
        """Return the artifact of a stage that serves the cell."""
        return find_artifact(self.project, self.record, stage, self.cell)

    def metadata(self, stage: str) -> Metadata:
        """Return the facts that a stage recorded."""
        return self.artifact(stage).metadata

    def every_facts(self) -> Iterator[Metadata]:
        """Yield the metadata of each stage of the cell's system."""
        for name in dict.fromkeys(s.name for s in self.system.all_stages):
            if self.holds(name):
                yield self.metadata(name)

    def columns(self, stage: str, table: str, place: Place = (0,)) -> Columns:
        """Return the columns of one repetition of a table."""
        return self.artifact(stage).columns(table, place)

    def count(self, stage: str) -> int:
        """Return how many rows the tables of a stage have in all."""
        return self.artifact(stage).n_rows

    def read(self, stage: str, table: str) -> pd.DataFrame:
        """Return a whole table, with its index."""
        return pd.DataFrame(self.artifact(stage).table(table).to_pandas())


def find_artifact(
    project: Project, record: RunRecord, stage: str, cell: Cell
) -> Artifact:
    """Return the artifact of a stage that serves ``cell`` in a run."""
    return checked_artifact(project, stage, _serving_key(record, stage, cell))


def stage_metadata(
    project: Project, record: RunRecord, stage: str, cell: Cell
) -> Metadata:
    """Return a stage's metadata without reading or checking its tables."""
    return artifact(project, stage, _serving_key(record, stage, cell)).metadata


def _serving_key(record: RunRecord, stage: str, cell: Cell) -> str:
    keys = dict(record.stage_keys(stage))
    return keys[cell.most_specific(keys) or cell]


def final_views(project: Project, record: RunRecord) -> list[RunView]:
    """Return views of the final cells of a run, the narrowest ones.

    What another stage reads is no end, and neither is a cell that only part of a
    system's axes tell apart, unless nothing is.
    """
    parts = list(settings.labelled_parts(record.config))
    last = {name for _, part in parts for name in final_stages(part.settings)}
    done = (step["cell"] for step in record.steps if step["stage"] in last)
    ended_cells = dict.fromkeys(map(Cell.from_mapping, done))
    return [
        RunView(project, record, cell, settings.find_part(parts, cell))
        for cell in ended_cells
        if not any(cell != other and cell.serves(other) for other in ended_cells)
    ]


def run_systems(record: RunRecord) -> list[System]:
    """Return the systems of a run, each once."""
    return distinct_systems(part for _, part in settings.labelled_parts(record.config))


def distinct_systems(parts: Iterable[Part]) -> list[System]:
    """Return the distinct systems of some parts."""
    systems = (find_system(part.settings.protocol) for part in parts)
    return list({member.name: member for member in systems}.values())


def production_outcomes(
    project: Project, record: RunRecord
) -> dict[Cell, dict[str, float]]:
    """Return the production metrics of each cell."""
    pairs = (
        (view.cell, view.system.production_metrics(view))
        for view in final_views(project, record)
    )
    return {cell: dict(outcome) for cell, outcome in pairs if outcome}


def reputations(project: Project, record: RunRecord) -> dict[Cell, Reputation]:
    """Return how the deployed model stands that each cell of a release asks about."""
    return {
        view.cell: view.system.reputation(view)
        for view in final_views(project, record)
        if view.system.reputation
    }


def run_notes(project: Project, record: RunRecord) -> list[str]:
    """Return the notes of each system of a run for its reader, a line each."""
    views_by_system: dict[str, list[RunView]] = {}
    for view in final_views(project, record):
        views_by_system.setdefault(view.system.name, []).append(view)
    lines = (
        line
        for name, system_views in views_by_system.items()
        for line in find_system(name).notes(system_views)
    )
    return list(dict.fromkeys(lines))


def final_model(project: Project, record: RunRecord, cell: Cell) -> Any:
    """Return the model to keep of a cell's first replicate; None: none.

    It is what the main method was scored with: any object with ``predict``. One of raw
    records takes a table as training did.
    """
    view = RunView(project, record, cell, settings.part_of_cell(record.config, cell))
    model = view.system.final_model(view) if view.system.final_model else None
    if isinstance(model, RecordPredictor):
        from curvote.data.tables.records import RawRecords

        model.form = RawRecords.of(view)
    return model


def drift_alerts(project: Project, record: RunRecord) -> list[str]:
    """Return a line for each cell of a run whose newer batches are worse.

    Only a round that stays open has batches (`intake`); what is worse, the system says.
    """
    alerts: list[str] = []
    for view in final_views(project, record):
        senders = [stage.name for stage in view.system.production if stage.message]
        every_facts = map(view.metadata, filter(view.holds, senders))
        alerts.extend(
            f"{view.cell}: the newer of {sum(facts['batches'])} votes find the"
            f" classifiers worse (evidence {facts['decline']:.3g} to 1); --new-release"
            " asks for new reports and trains anew"
            for facts in every_facts
            if view.system.needs_new_round(view.settings, facts)
        )
    return alerts


# Coordinates that every row of `scores --json` has; others stand where there are any.
ALWAYS_COLUMNS = ("protocol", "epsilon", "learner")
Row = Mapping[str, Any]
# The (name, value) pairs of a score; its mean, the standard error, how many replicates.
Where = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class MeanScore:
    """A mean over ``n`` replicates, its standard error and its interval."""

    value: float | None
    se: float | None = None
    n: int = 0
    ends: Mapping[str, float] = field(default_factory=dict)


def scoring_stages(record: RunRecord) -> list[str]:
    """Return the stages of a run that score."""
    stages = (stage for member in run_systems(record) for stage in member.all_stages)
    return [*dict.fromkeys(s.name for s in stages if SCORES in s.tables)]


def replicate_scores(project: Project, record: RunRecord) -> pd.DataFrame:
    """Return one row for each repetition, method and metric, with its cell."""
    among, named = run_systems(record), scoring_stages(record)
    declared = {metric.name for member in among for metric in member.metrics}
    tables, cells = [], []
    for step in record.steps:
        if step["stage"] not in named:
            continue
        stored = checked_artifact(project, step["stage"], step["key"])
        table = stored.table(SCORES.name)
        if not set(SCORES.columns) - set(SCORES.optional) <= set(table.column_names):
            raise UserError(  # it had a column for each metric
                f"run {record.id} was computed by an earlier version of curvote, whose"
                f" scores had another form; `curvote run {record.pipeline}` computes"
                " them anew, with the same numbers."
            )
        undeclared = set(table.column("metric").unique().to_pylist()) - declared
        if undeclared:
            names = ", ".join(member.name for member in among)
            absent = ", ".join(sorted(undeclared))
            message = f"{names}: scores of {absent}, which no system declares"
            raise InternalError(message)
        tables.append(table.to_pandas())
        cells.append(Cell.from_mapping(step["cell"]))
    if not tables:
        return pd.DataFrame()
    return _with_coordinates(pd.concat(tables), cells, [*map(len, tables)])


def _with_coordinates(
    table: pd.DataFrame, cells: Sequence[Cell], lengths: Sequence[int]
) -> pd.DataFrame:
    always: dict[str, Any] = dict.fromkeys((*ALWAYS_COLUMNS, "setting"))
    coordinates = [always | cell.to_json() for cell in cells]
    for name in dict.fromkeys(name for where in coordinates for name in where):
        values = np.empty(len(coordinates), dtype=object)
        values[:] = [where.get(name, np.nan) for where in coordinates]
        column = np.repeat(values, lengths)
        table[name] = pd.Series(column, index=table.index, dtype=object)
    return table.astype({"group": object})


def main_score_index(record: RunRecord, rows: Sequence[Row]) -> int | None:
    """Return the index of the row with the run's main score; None: no scores.

    It is chosen before any result, so that runs compare like with like: the main method
    of the first protocol that a deployment could use, by the learner and setting that
    are stated first; of those that only numbers tell apart the latest; at epsilon 1 or
    the level nearest to it, on another axis at the last. None: there are no scores.
    """
    parts = list(settings.labelled_parts(record.config))
    names = {a.name for _, p in parts for a in find_system(p.settings.protocol).axes}
    read = partial(_ScoreCandidate.from_row, parts, names)
    candidates = [c for c in map(read, count(), rows) if c.rank is not None]
    usable = [c for c in candidates if c.usable] or candidates
    ungrouped = [c for c in usable if not c.group] or usable
    if not ungrouped:
        return None
    comparable = [c for c in ungrouped if c.text_values == ungrouped[0].text_values]
    best: dict[Cell, _ScoreCandidate] = {}  # a rule may take several methods of a cell
    for candidate in sorted(comparable, key=lambda candidate: candidate.rank or ()):
        best.setdefault(candidate.cell, candidate)
    comparable = [c for c in comparable if best[c.cell] is c]
    latest = max(c.number_values for c in comparable)
    series = [c for c in comparable if c.number_values == latest]
    return min(series, key=lambda candidate: candidate.distance).place


@dataclass(frozen=True)
class _ScoreCandidate:
    """A score that may be the run's main one, with the keys of that choice."""

    place: int
    cell: Cell
    group: str
    rank: tuple[int, int] | None
    usable: bool
    x: str

    @classmethod
    def from_row(
        cls, parts: settings.Parts, names: Container[str], place: int, row: Row
    ) -> _ScoreCandidate:
        where = {name: row[name] for name in row if name in names}
        setting = settings.setting_name(row.get("setting", {}))
        where = {"protocol": row["protocol"], "setting": setting} | where
        cell = Cell.from_mapping(where)
        member = find_system(settings.find_part(parts, cell).settings.protocol)
        name, x = row["method"], member.x.name
        metric = [item.name for item in member.metrics].index(row["metric"])
        rank = (member.main.index(name), metric) if name in member.main else None
        named_methods = [item for item in member.methods if item.name == name]
        excluded = any(item.study_only or item.reference for item in named_methods)
        usable = not excluded and cell[x] is not None
        return cls(place, cell, row.get("group") or "", rank, usable, x)

    @property
    def text_values(self) -> list[tuple[str, Any]]:
        pairs = self.cell.pairs
        return [(name, value) for name, value in pairs if isinstance(value, str)]

    @property
    def number_values(self) -> list[float]:
        pairs = self.cell.with_values(**{self.x: None}).pairs
        return [value for _, value in pairs if not isinstance(value, str)]

    @property
    def distance(self) -> tuple[float, float]:
        """The distance of the level from the headline's level, then the place."""
        at = self.cell[self.x]
        if self.x != EPSILON.name or not isinstance(at, float | int) or at <= 0:
            return 0.0, -self.place
        return abs(math.log(at)), self.place


def mean_scores(project: Project, record: RunRecord) -> list[dict[str, Any]]:
    """Return the rows of ``scores --json``: means and standard errors.

    A row has its coordinates, ``method``, ``metric`` and ``value``; the mean stands
    under the metric's own name, too, and so do those of metrics that stand beside it.
    A score that is known by an interval has a row of its own, with ``quantity``, the
    metric's name, and its mean ends ``lower`` and ``upper``. What is free has epsilon
    0, what has no privacy none. Standard errors are null with one replicate. Production
    has no rows: its truth is not known.
    """
    parts = [part for _, part in settings.labelled_parts(record.config)]
    systems = distinct_systems(parts)
    table = replicate_scores(project, record)
    if table.empty:
        return []
    repeated = {index.name for member in systems for index in member.index}
    measured = {"value", *INTERVAL_ENDS, *repeated}
    means = _replicate_means(table, [c for c in table.columns if c not in measured])
    beside = {m.name: m for member in systems for m in member.metrics if m.beside}
    labels = settings.labels_by_setting(record.config)
    methods = [method for member in systems for method in member.methods]
    free = {method.name: {"epsilon": 0.0} for method in methods if method.free}
    rows = [
        {"pipeline": record.pipeline}
        | _summary_row(dict(where), mean, more, labels)
        | free.get(dict(where)["method"], {})
        for where, mean in means.items()
        if mean.ends or dict(where)["metric"] not in beside
        for more in [_additional_values(means, dict(where), beside.values())]
    ]
    return sorted(rows, key=_row_order(parts, systems, list(labels.values())))


def _replicate_means(table: pd.DataFrame, names: list[str]) -> dict[Where, MeanScore]:
    """Return the mean of each score over replicates, each weighted once."""
    number = table.groupby(names, dropna=False, sort=False).ngroup().to_numpy()
    by_replicate = table.groupby([number, REPLICATE.name])["value"].mean()
    replicates = by_replicate.index.get_level_values(0).to_numpy()
    groups = _split_groups(replicates, by_replicate.to_numpy())
    ends = {
        end: _split_groups(number, table[end].to_numpy(dtype=float, na_value=np.nan))
        for end in INTERVAL_ENDS
        if end in table
    }
    first = table[names].iloc[np.unique(number, return_index=True)[1]]
    keys = zip(*(first[name].tolist() for name in names), strict=True)
    means: dict[Where, MeanScore] = {}
    for place, (key, values) in enumerate(zip(keys, groups, strict=True)):
        n = len(values)
        se = float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else None
        of_place = {end: groups_of[place] for end, groups_of in ends.items()}
        complete = {end: x for end, x in of_place.items() if not np.isnan(x).any()}
        interval = {end: float(x.mean()) for end, x in complete.items()}
        where = tuple(zip(names, map(missing_to_none, key), strict=True))
        means[where] = MeanScore(float(values.mean()), se, n, interval)
    return means


def _split_groups(number: np.ndarray, values: np.ndarray) -> list[np.ndarray]:
    """Return the values of each group, by its number from 0."""
    order = np.argsort(number, kind="stable")
    return np.split(values[order], np.cumsum(np.bincount(number))[:-1])


def _additional_values(
    means: Mapping[Where, MeanScore], where: dict[str, Any], beside: Iterable[Metric]
) -> dict[str, float | None]:
    columns: dict[str, float | None] = {}
    for metric in beside:
        if metric.beside == where["metric"]:
            key_of_metric = tuple((where | {"metric": metric.name}).items())
            absent = MeanScore(None if metric.spread else 0.0)
            mean = means.get(key_of_metric, absent)
            mean = absent if mean.ends else mean
            columns |= zip(metric.columns, (mean.value, mean.se), strict=False)
    return columns


def _summary_row(
    where: dict[str, Any],
    mean: MeanScore,
    beside: Mapping[str, float | None],
    labels: Mapping[str | None, dict[str, str]],
) -> dict[str, Any]:
    metric, setting = where.pop("metric"), where.pop("setting")
    row = {name: where.pop(name) for name in (*ALWAYS_COLUMNS, "method")}
    row |= {metric: mean.value, "se": mean.se, "replicates": mean.n, **beside}
    row |= {"quantity": metric, **mean.ends} if mean.ends else {}
    row |= {name: value for name, value in where.items() if value is not None}
    row |= {"setting": labels[setting]} if setting else {}
    return row | {"metric": metric, "value": mean.value}


def _row_order(
    parts: Iterable[Part], systems: Iterable[System], labels: list[dict[str, str]]
) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    """Return a sort key of rows: setting, axes, then method."""
    axes: dict[str, dict[Any, int]] = {}
    for part in parts:
        for axis in find_system(part.settings.protocol).axes:
            ranks_of_values = axes.setdefault(axis.name, {})
            for value in axis.values(part.settings):
                ranks_of_values.setdefault(value, len(ranks_of_values))
    ranks = {m.name: m.rank for member in systems for m in member.methods}
    last = 1 << 30

    def row_key(row: dict[str, Any]) -> tuple[Any, ...]:
        setting = labels.index(row["setting"]) if "setting" in row else 0
        places = (at.get(row.get(name), last) for name, at in axes.items())
        rank = ranks.get(row["method"], last)
        return setting, *places, rank, row["method"], row.get("group", "")

    return row_key


def declared_rows(record: RunRecord, rows: Iterable[Row]) -> list[Row]:
    """Return the rows of declared methods, with the cells in which they stand.

    Others, of names that settings make, stand in `scores --json` and in sections of
    their own. What is free stands in cells without an epsilon.
    """
    methods = {m.name: m for member in run_systems(record) for m in member.methods}
    return [
        {**row, "epsilon": None} if methods[row["method"]].free else row
        for row in rows
        if row["method"] in methods
    ]


def missing_to_none(value: Any) -> Any:
    """Return a value of a table; None for a missing one."""
    return None if pd.isna(value) else value
