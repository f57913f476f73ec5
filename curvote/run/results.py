"""What a completed run says: scores, outcomes, and the model of each cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from curvote.chain.axis import REPLICATE, Cell, Value
from curvote.chain.lookup import system
from curvote.chain.measure import SCORES, Metric
from curvote.chain.stage import Columns, Facts, Place
from curvote.chain.system import Part, System
from curvote.errors import InternalError, UserError
from curvote.run.config.parts import belonging, part_of, parts_of
from curvote.run.config.settings import dotted, labels_of
from curvote.run.history import RunRecord
from curvote.run.plan.expand import ends_of, values_of
from curvote.run.project import Project
from curvote.run.store.artifacts import Artifact, sound

# Coordinates that every row of `scores --json` has; others stand where there are any.
ALWAYS = ("protocol", "epsilon", "learner")
# The (name, value) pairs of a score; its mean, the standard error, how many replicates.
Where = tuple[tuple[str, Any], ...]
Mean = tuple[float, float | None, int]


@dataclass(frozen=True)
class RunView:
    """One cell of a run, as its system sees it (`curvote.chain.view.View`)."""

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
        return system(self.settings.protocol)

    @cached_property
    def _values(self) -> dict[str, Any]:
        return values_of(self.settings, self.cell)

    def without(self, *axes: str) -> RunView:
        """Return the view of the wider cell that has no value on some axes."""
        return replace(self, cell=self.cell.with_(**dict.fromkeys(axes)))

    def at(self, **values: Value) -> RunView:
        """Return the view of the narrower cell with these values on its axes."""
        return replace(self, cell=self.cell.with_(**values))

    def place(self, replicate: int = 0) -> Place:
        """Return where the tables of a replicate stand, the first of several."""
        return replicate, *[0] * (len(self.system.index) - 1)

    def setting(self, path: str) -> Any:
        """Return the value of a dotted key as the stages of the cell read it."""
        return dotted(self._values, path)

    def holds(self, stage: str, table: str = "") -> bool:
        """Say whether the cell has the stage, and the stage that table."""
        there = self.cell.narrowest(dict(self.record.keys(stage))) is not None
        return there and (not table or self.artifact(stage).holds(table))

    def artifact(self, stage: str) -> Artifact:
        """Return the artifact of a stage that serves the cell."""
        return find(self.project, self.record, stage, self.cell)

    def facts(self, stage: str) -> Facts:
        """Return the facts that a stage recorded."""
        return self.artifact(stage).facts

    def every_facts(self) -> Iterator[Facts]:
        """Yield the facts of each stage of the cell's system."""
        for name in dict.fromkeys(s.name for s in self.system.every_stage):
            if self.holds(name):
                yield self.facts(name)

    def sent_facts(self) -> Iterator[Facts]:
        """Yield the facts of each stage at which something left somebody."""
        for stage in self.system.production:
            if stage.message and self.holds(stage.name):
                yield self.facts(stage.name)

    def columns(self, stage: str, table: str, place: Place = (0,)) -> Columns:
        """Return the columns of one repetition of a table."""
        return self.artifact(stage).columns(table, place)

    def count(self, stage: str) -> int:
        """Return how many rows the tables of a stage have in all."""
        return self.artifact(stage).rows

    def read(self, stage: str, table: str) -> pd.DataFrame:
        """Return a whole table, with its index."""
        return pd.DataFrame(self.artifact(stage).table(table).to_pandas())


def find(project: Project, record: RunRecord, stage: str, cell: Cell) -> Artifact:
    """Return the artifact of a stage that serves ``cell`` in a run."""
    keys = dict(record.keys(stage))
    found = cell.narrowest(keys)
    return sound(project, stage, keys[found or cell])


def views(project: Project, record: RunRecord) -> list[RunView]:
    """Return the cells of a run that end in something: the narrowest ones.

    What another stage reads is no end, and neither is a cell that only part of a
    system's axes tell apart, unless nothing is.
    """
    parts = list(parts_of(record.config))
    last = {name for _, part in parts for name in ends_of(part.settings)}
    done = (step["cell"] for step in record.steps if step["stage"] in last)
    every = dict.fromkeys(map(Cell.of, done))
    ends = [c for c in every if not any(c != o and c.serves(o) for o in every)]
    return [RunView(project, record, cell, belonging(parts, cell)) for cell in ends]


def scores(project: Project, record: RunRecord) -> pd.DataFrame:
    """Return one row for each repetition, method and metric, with its coordinates."""
    return _scores(project, record, systems_of(record))


def _scores(
    project: Project, record: RunRecord, among: Sequence[System]
) -> pd.DataFrame:
    """Read the stages that score, and no other: what they read may be gone."""
    every = (stage for one in among for stage in one.every_stage)
    scoring = {stage.name for stage in every if SCORES in stage.tables}
    found = []
    for step in record.steps:
        if step["stage"] in scoring:
            table = sound(project, step["stage"], step["key"]).table(SCORES.name)
            _check_form(record, table.column_names)
            _check_metrics(among, table.column("metric").unique().to_pylist())
            found.append(_placed(table.to_pandas(), Cell.of(step["cell"])))
    return pd.DataFrame(pd.concat(found)) if found else pd.DataFrame()


def _check_form(record: RunRecord, columns: Sequence[str]) -> None:
    """Refuse scores of a version that had a column for each metric."""
    if not set(SCORES.columns) - set(SCORES.optional) <= set(columns):
        raise UserError(
            f"run {record.id} was computed by an earlier version of curvote, whose"
            f" scores had another form; `curvote run {record.pipeline}` computes them"
            " anew, with the same numbers."
        )


def _check_metrics(among: Sequence[System], metrics: Sequence[str]) -> None:
    known = {metric.name for one in among for metric in one.metrics}
    if not known.issuperset(metrics):
        names = ", ".join(one.name for one in among)
        absent = ", ".join(sorted(set(metrics) - known))
        raise InternalError(f"{names}: scores of {absent}, which no system declares")


def _placed(table: pd.DataFrame, cell: Cell) -> pd.DataFrame:
    """Add the coordinates of a cell to its scores."""
    where: dict[str, Any] = dict.fromkeys((*ALWAYS, "setting")) | cell.to_json()
    objects = dict.fromkeys([*where, "group"], object)
    return table.assign(**where).astype(objects)


def summary(project: Project, record: RunRecord) -> list[dict[str, Any]]:
    """Return the rows of ``scores --json``: means and standard errors over replicates.

    A row has its coordinates, ``method``, ``metric`` and ``value``; the mean stands
    under the metric's own name, too, and so do those of metrics that stand beside it.
    Standard errors are null with one replicate. Production has no rows: its truth is
    not known.
    """
    parts = [part for _, part in parts_of(record.config)]
    systems = _systems(parts)
    table = _scores(project, record, systems)
    if table.empty:
        return []
    repeated = {index.name for one in systems for index in one.index}
    means = _means(table, [c for c in table.columns if c not in {"value", *repeated}])
    beside = {m.name: m for one in systems for m in one.metrics if m.beside}
    labels = labels_of(record.config)
    rows = [
        {"pipeline": record.pipeline} | _row(dict(where), mean, more, labels)
        for where, mean in means.items()
        if dict(where)["metric"] not in beside
        for more in [_beside(means, dict(where), beside.values())]
    ]
    return sorted(rows, key=_order(parts, systems, list(labels.values())))


def systems_of(record: RunRecord) -> list[System]:
    """Return the systems of a run, each once."""
    return _systems(part for _, part in parts_of(record.config))


def _systems(parts: Iterable[Part]) -> list[System]:
    every = (system(part.settings.protocol) for part in parts)
    return list({one.name: one for one in every}.values())


def _means(table: pd.DataFrame, names: list[str]) -> dict[Where, Mean]:
    """Return the mean of each score; what repeats inside a replicate counts once."""
    found = {}
    for key, group in table.groupby(names, dropna=False, sort=False):
        each, where = group.groupby(REPLICATE.name)["value"].mean(), map(plain, key)
        n = len(each)
        se = float(each.std(ddof=1) / np.sqrt(n)) if n > 1 else None
        found[tuple(zip(names, where, strict=True))] = float(each.mean()), se, n
    return found


def _beside(
    means: Mapping[Where, Mean], where: dict[str, Any], beside: Iterable[Metric]
) -> dict[str, float | None]:
    """Return the values of the metrics that stand beside the one of a row."""
    found: dict[str, float | None] = {}
    for metric in beside:
        if metric.beside == where["metric"]:
            here = tuple((where | {"metric": metric.name}).items())
            known = means.get(here, (metric.untold, None, 0))
            found |= zip(metric.columns, known, strict=False)
    return found


def _row(
    where: dict[str, Any],
    mean: Mean,
    beside: Mapping[str, float | None],
    labels: Mapping[str | None, dict[str, str]],
) -> dict[str, Any]:
    value, se, n = mean
    metric, setting = where.pop("metric"), where.pop("setting")
    row = {name: where.pop(name) for name in (*ALWAYS, "method")}
    row |= {metric: value, "se": se, "replicates": n, **beside}
    row |= {name: value for name, value in where.items() if value is not None}
    row |= {"setting": labels[setting]} if setting else {}
    return row | {"metric": metric, "value": value}


def _order(
    parts: Iterable[Part], systems: Iterable[System], labels: list[dict[str, str]]
) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    """Return what sorts rows: by setting, by the axes' own order, then by method."""
    axes: dict[str, dict[Any, int]] = {}
    for part in parts:
        for axis in system(part.settings.protocol).axes:
            known = axes.setdefault(axis.name, {})
            for value in axis.values(part.settings):
                known.setdefault(value, len(known))
    ranks = {method.name: method.rank for one in systems for method in one.methods}
    last = 1 << 30

    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        setting = labels.index(row["setting"]) if "setting" in row else 0
        places = (known.get(row.get(name), last) for name, known in axes.items())
        rank = ranks.get(row["method"], last)
        return setting, *places, rank, row["method"], row.get("group", "")

    return key


def plain(value: Any) -> Any:
    """Return a cell of a table of scores; what pandas calls missing is None."""
    return None if pd.isna(value) else value


def outcomes(project: Project, record: RunRecord) -> dict[Cell, dict[str, float]]:
    """Return what production knows of each cell, as its system says."""
    found = ((view.cell, view.system.outcome(view)) for view in views(project, record))
    return {cell: dict(outcome) for cell, outcome in found if outcome}


def notes(project: Project, record: RunRecord) -> list[str]:
    """Return what each system of a run tells its reader, a line each."""
    every: dict[str, list[RunView]] = {}
    for view in views(project, record):
        every.setdefault(view.system.name, []).append(view)
    told = (line for name, own in every.items() for line in system(name).notes(own))
    return list(dict.fromkeys(told))


def final_model(project: Project, record: RunRecord, cell: Cell) -> Any:
    """Return the model to keep of a cell's first replicate, None where there is none.

    It is what the main method was scored with: any object with ``predict``.
    """
    view = RunView(project, record, cell, part_of(record.config, cell))
    return view.system.final(view) if view.system.final else None
