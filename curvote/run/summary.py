"""The scores of a completed run: one by one, and their means over replicates."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from curvote.chain.axis import EPSILON, REPLICATE, Cell
from curvote.chain.lookup import system
from curvote.chain.measure import ENDS, SCORES, Metric
from curvote.chain.system import Part, System
from curvote.errors import InternalError, UserError
from curvote.run.config.parts import Parts, belonging, parts_of
from curvote.run.config.settings import labels_of, named
from curvote.run.history import RunRecord
from curvote.run.project import Project
from curvote.run.results import each_once, systems_of
from curvote.run.store.artifacts import sound

# Coordinates that every row of `scores --json` has; others stand where there are any.
ALWAYS = ("protocol", "epsilon", "learner")
Row = Mapping[str, Any]
# The (name, value) pairs of a score; its mean, the standard error, how many replicates.
Where = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Mean:
    """A mean over ``n`` replicates, its standard error, and what it lies between."""

    value: float | None
    se: float | None = None
    n: int = 0
    ends: Mapping[str, float] = field(default_factory=dict)


def scores(project: Project, record: RunRecord) -> pd.DataFrame:
    """Return one row for each repetition, method and metric, with its coordinates."""
    return _scores(project, record, systems_of(record))


def scoring(record: RunRecord) -> list[str]:
    """Return the stages of a run that score."""
    return list(_scoring(systems_of(record)))


def _scoring(among: Sequence[System]) -> dict[str, None]:
    every = (stage for one in among for stage in one.every_stage)
    return dict.fromkeys(stage.name for stage in every if SCORES in stage.tables)


def _scores(
    project: Project, record: RunRecord, among: Sequence[System]
) -> pd.DataFrame:
    """Read the stages that score, and no other: what they read may be gone."""
    named = _scoring(among)
    found, cells = [], []
    for step in record.steps:
        if step["stage"] in named:
            table = sound(project, step["stage"], step["key"]).table(SCORES.name)
            _check_form(record, table.column_names)
            _check_metrics(among, table.column("metric").unique().to_pylist())
            found.append(table.to_pandas())
            cells.append(Cell.of(step["cell"]))
    return (
        _placed(pd.concat(found), cells, [*map(len, found)])
        if found
        else pd.DataFrame()
    )


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


def _placed(
    table: pd.DataFrame, cells: Sequence[Cell], lengths: Sequence[int]
) -> pd.DataFrame:
    """Add the coordinates of each cell to its scores, which stand one after another."""
    always: dict[str, Any] = dict.fromkeys((*ALWAYS, "setting"))
    every = [always | cell.to_json() for cell in cells]
    for name in dict.fromkeys(name for where in every for name in where):
        values = np.empty(len(every), dtype=object)
        values[:] = [where.get(name, np.nan) for where in every]
        column = np.repeat(values, lengths)
        table[name] = pd.Series(column, index=table.index, dtype=object)
    return table.astype({"group": object})


def main_score(record: RunRecord, rows: Sequence[Row]) -> int | None:
    """Return the place among declared ``rows`` of the score that stands for a run.

    It is chosen before any result, so that runs compare like with like: the main method
    of the first protocol that a deployment could use, by the learner and setting that
    are stated first; of those that only numbers tell apart the latest; at epsilon 1 or
    the level nearest to it, on another axis at the last. None: there are no scores.
    """
    parts = list(parts_of(record.config))
    names = {a.name for _, p in parts for a in system(p.settings.protocol).axes}
    found = [
        each
        for place, row in enumerate(rows)
        if (each := _Candidate.of(parts, names, place, row)).rank is not None
    ]
    usable = [each for each in found if each.usable] or found
    whole = [each for each in usable if not each.group] or usable
    if not whole:
        return None
    alike = [each for each in whole if each.words == whole[0].words]
    best: dict[Cell, _Candidate] = {}  # of each cell: a rule may take several methods
    for each in sorted(alike, key=lambda each: each.rank or ()):
        best.setdefault(each.cell, each)
    alike = [each for each in alike if best[each.cell] is each]
    latest = max(each.numbers for each in alike)
    line = [each for each in alike if each.numbers == latest]
    return min(line, key=lambda each: each.away).place


@dataclass(frozen=True)
class _Candidate:
    """A score that may stand for a run: where it stands, and what tells it apart."""

    place: int
    cell: Cell
    group: str
    rank: tuple[int, int] | None
    usable: bool
    x: str

    @classmethod
    def of(
        cls, parts: Parts, names: Container[str], place: int, row: Row
    ) -> _Candidate:
        where = {"protocol": row["protocol"], "setting": named(row.get("setting", {}))}
        cell = Cell.of(where | {name: row[name] for name in row if name in names})
        own = system(belonging(parts, cell).settings.protocol)
        name, x = row["method"], own.x.name
        metric = [each.name for each in own.metrics].index(row["metric"])
        rank = (own.main.index(name), metric) if name in own.main else None
        known = [each for each in own.methods if each.name == name]
        apart = any(each.study_only or each.reference for each in known)
        usable = not apart and cell[x] is not None
        return cls(place, cell, row.get("group") or "", rank, usable, x)

    @property
    def words(self) -> list[tuple[str, Any]]:
        pairs = self.cell.pairs
        return [(name, value) for name, value in pairs if isinstance(value, str)]

    @property
    def numbers(self) -> list[float]:
        pairs = self.cell.with_(**{self.x: None}).pairs
        return [value for _, value in pairs if not isinstance(value, str)]

    @property
    def away(self) -> tuple[float, float]:
        """How far the level is from where the headline stands."""
        at = self.cell[self.x]
        if self.x != EPSILON.name or not isinstance(at, float | int) or at <= 0:
            return 0.0, -self.place
        return abs(math.log(at)), self.place


def summary(project: Project, record: RunRecord) -> list[dict[str, Any]]:
    """Return the rows of ``scores --json``: means and standard errors over replicates.

    A row has its coordinates, ``method``, ``metric`` and ``value``; the mean stands
    under the metric's own name, too, and so do those of metrics that stand beside it.
    A score that is known by an interval has a row of its own, with ``quantity``, the
    metric's name, and its mean ends ``lower`` and ``upper``. What is free has epsilon
    0, what has no privacy none. Standard errors are null with one replicate. Production
    has no rows: its truth is not known.
    """
    parts = [part for _, part in parts_of(record.config)]
    systems = each_once(parts)
    table = _scores(project, record, systems)
    if table.empty:
        return []
    repeated = {index.name for one in systems for index in one.index}
    measured = {"value", *ENDS, *repeated}
    means = _means(table, [c for c in table.columns if c not in measured])
    beside = {m.name: m for one in systems for m in one.metrics if m.beside}
    labels = labels_of(record.config)
    free = {m.name: {"epsilon": 0.0} for one in systems for m in one.methods if m.free}
    rows = [
        {"pipeline": record.pipeline}
        | _row(dict(where), mean, more, labels)
        | free.get(dict(where)["method"], {})
        for where, mean in means.items()
        if mean.ends or dict(where)["metric"] not in beside
        for more in [_beside(means, dict(where), beside.values())]
    ]
    return sorted(rows, key=_order(parts, systems, list(labels.values())))


def _means(table: pd.DataFrame, names: list[str]) -> dict[Where, Mean]:
    """Return the mean of each score; what repeats inside a replicate counts once."""
    number = table.groupby(names, dropna=False, sort=False).ngroup().to_numpy()
    of_each = table.groupby([number, REPLICATE.name])["value"].mean()
    each = _apart(of_each.index.get_level_values(0).to_numpy(), of_each.to_numpy())
    ends = {end: _apart(number, _floats(table, end)) for end in ENDS if end in table}
    first = table[names].iloc[np.unique(number, return_index=True)[1]]
    keys = zip(*(first[name].tolist() for name in names), strict=True)
    return {
        tuple(zip(names, map(plain, key), strict=True)): Mean(
            float(values.mean()),
            float(values.std(ddof=1) / np.sqrt(len(values)))
            if len(values) > 1
            else None,
            len(values),
            {
                end: float(of[place].mean())
                for end, of in ends.items()
                if not np.isnan(of[place]).any()
            },
        )
        for place, (key, values) in enumerate(zip(keys, each, strict=True))
    }


def _apart(number: np.ndarray, values: np.ndarray) -> list[np.ndarray]:
    """Return the values of each group, by its number; groups begin at 0."""
    order = np.argsort(number, kind="stable")
    return np.split(values[order], np.cumsum(np.bincount(number))[:-1])


def _floats(table: pd.DataFrame, name: str) -> np.ndarray:
    return table[name].to_numpy(dtype=float, na_value=np.nan)


def _beside(
    means: Mapping[Where, Mean], where: dict[str, Any], beside: Iterable[Metric]
) -> dict[str, float | None]:
    """Return the values of the metrics that stand beside the one of a row."""
    found: dict[str, float | None] = {}
    for metric in beside:
        if metric.beside == where["metric"]:
            here = tuple((where | {"metric": metric.name}).items())
            known = means.get(here, Mean(metric.untold))
            known = Mean(metric.untold) if known.ends else known
            found |= zip(metric.columns, (known.value, known.se), strict=False)
    return found


def _row(
    where: dict[str, Any],
    mean: Mean,
    beside: Mapping[str, float | None],
    labels: Mapping[str | None, dict[str, str]],
) -> dict[str, Any]:
    metric, setting = where.pop("metric"), where.pop("setting")
    row = {name: where.pop(name) for name in (*ALWAYS, "method")}
    row |= {metric: mean.value, "se": mean.se, "replicates": mean.n, **beside}
    row |= {"quantity": metric, **mean.ends} if mean.ends else {}
    row |= {name: value for name, value in where.items() if value is not None}
    row |= {"setting": labels[setting]} if setting else {}
    return row | {"metric": metric, "value": mean.value}


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


def declared(record: RunRecord, rows: Iterable[Row]) -> list[Row]:
    """Return the rows of methods that the systems of a run declare, with their cells.

    Others, of names that settings make, stand in `scores --json` and in sections of
    their own. What is free stands in cells without an epsilon.
    """
    known = {m.name: m for one in systems_of(record) for m in one.methods}
    return [
        {**row, "epsilon": None} if known[row["method"]].free else row
        for row in rows
        if row["method"] in known
    ]


def plain(value: Any) -> Any:
    """Return a cell of a table of scores; what pandas calls missing is None."""
    return None if pd.isna(value) else value
