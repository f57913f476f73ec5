"""What a run says of its cells: scores, parameters, stage keys, a place on the x-axis.

Whatever a system says of itself (its axes, metrics and methods) is asked for here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from curvote.chain.axis import Cell
from curvote.chain.lookup import system
from curvote.chain.measure import Metric
from curvote.chain.system import Part, System
from curvote.run.config.parts import Parts, belonging, parts_of
from curvote.run.config.settings import named
from curvote.run.history import RunRecord
from curvote.run.places import there
from curvote.run.project import Project
from curvote.run.store.artifacts import Artifact, artifact
from curvote.run.summary import declared

Row = Mapping[str, Any]
Metrics = dict[str, float]

_LONGEST = 250  # letters of a parameter


@dataclass(frozen=True)
class Score:
    """A row of ``scores --json``, and what its system says of it.

    ``x`` is the axis that stands on the x-axis. ``rank`` is the place of method and
    metric among those that may stand in a headline (of a cell the first that it has
    does), None where the method is none of them. ``called`` is one name for whatever
    takes that place in the cells of a line, and ``rule`` what was asked to take one. A
    ``reference`` is what others are held
    against. ``beside`` are the values of ``further`` measures and their standard
    errors, by name.
    """

    cell: Cell
    x: str
    metric: Metric
    method: str
    value: float
    se: float | None
    group: str
    rank: tuple[int, int] | None
    called: str
    reference: bool
    rule: str = ""
    beside: dict[str, float | None] = field(default_factory=dict, hash=False)
    further: dict[str, Metric] = field(default_factory=dict, hash=False)

    def of(self, name: str) -> Score | None:
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
    def grouped(self) -> str:
        """Which group it is told of: "group 2", or "class sh"; empty of the whole."""
        return f"{self.metric.each or 'group'} {self.group}" if self.group else ""

    @property
    def step(self) -> int:
        """The place on the x-axis."""
        return step(self.cell, self.x)

    @property
    def line(self) -> Cell:
        """What the cell, or its group, shares with its neighbours on the x-axis."""
        return self.cell.with_(**{self.x: None, "group": self.group or None})

    @property
    def place(self) -> Cell:
        """Where the cell stands on the x-axis; nowhere without privacy."""
        return Cell.of({self.x: self.cell[self.x]})

    @property
    def with_error(self) -> str:
        """The value and one standard error, in percent points where shown so."""
        factor, digits = (100, 2) if self.metric.shown == "percent" else (1, 3)
        values = (factor * v for v in (self.value, self.se) if v is not None)
        return " ± ".join(f"{value:.{digits}f}" for value in values)

    @property
    def shown(self) -> str:
        """The value as people read it: 12.7 %."""
        percent = self.metric.shown == "percent"
        return f"{100 * self.value:.1f} %" if percent else f"{self.value:.3g}"

    def metrics(self, *names: str) -> Metrics:
        """Return value and standard error as ``misclassification.NAME`` and ``..._se``.

        The name is the method's where no other is given.
        """
        group = self.grouped.replace(" ", "-", 1)
        own = {self.metric.name: self.value, f"{self.metric.name}_se": self.se}
        return {
            _allowed(".".join(filter(None, (metric, name, group)))): float(value)
            for metric, value in (own | self.beside).items()
            for name in names or (self.method,)
            if value is not None and math.isfinite(value)
        }


def scores_of(record: RunRecord, rows: Iterable[Row]) -> list[Score]:
    """Return the declared rows of ``scores --json`` as scores, in their order."""
    parts = list(parts_of(record.config))
    names = {axis.name for _, part in parts for axis in _system(part).axes}
    own = declared(record, rows)
    return [_score(parts, _cell(row, names), row) for row in own]


def _score(parts: Parts, cell: Cell, row: Row) -> Score:
    part = belonging(parts, cell)
    own, method = _system(part), row["method"]
    place = [metric.name for metric in own.metrics].index(row["metric"])
    rank = (own.main.index(method), place) if method in own.main else None
    further = [m for m in own.metrics if m.spread and m.beside == row["metric"]]
    return Score(
        cell=cell,
        x=own.x.name,
        metric=own.metrics[place],
        method=method,
        value=row["value"],
        se=row["se"],
        group=row.get("group", ""),
        rank=rank,
        called=method if rank is None else _called(part),
        reference=any(one.reference for one in own.methods if one.name == method),
        rule=part.rule if rank is not None else "",
        beside={name: row[name] for metric in further for name in metric.columns},
        further={metric.name: metric for metric in further},
    )


def _called(part: Part) -> str:
    """Return a line's name: its method, or the protocol that may take several."""
    own, label = _system(part), str(part.settings.called)
    return own.main[0] if len(own.main) == 1 and label == own.name else label


def _system(part: Part) -> System:
    return system(part.settings.protocol)


def _cell(row: Row, names: Iterable[str]) -> Cell:
    where = {"protocol": row["protocol"], "setting": named(row.get("setting", {}))}
    return Cell.of(where | {name: row[name] for name in row if name in names})


def _allowed(name: str) -> str:
    """Return a name that MLflow takes: letters, digits and few signs."""
    return re.sub(r"[^\w. -]", "-", name)


def parts_by_cell(record: RunRecord, cells: Iterable[Cell]) -> dict[Cell, Part]:
    """Return the part of a run's configuration that each cell belongs to."""
    parts = list(parts_of(record.config))
    return {cell: belonging(parts, cell) for cell in cells}


def x_of(part: Part) -> str:
    """Return the axis that stands on the x-axis of a part's figures."""
    return _system(part).x.name


def step(cell: Cell, x: str) -> int:
    """Return a cell's place on the x-axis as MLflow wants it: a whole number.

    Privacy levels are fractions, so a step is a thousandth of epsilon: 500 is 0.5.
    Counts are steps as they are. Without privacy there is no place: 0.
    """
    value = cell[x]
    if isinstance(value, float):
        return round(1000 * value)
    return value if isinstance(value, int) else 0


def by_cell(scores: Iterable[Score]) -> dict[Cell, Metrics]:
    """Return the metrics of each child: its own and those that it shares with others.

    What holds for several cells, such as the majority's for all learners, is copied
    into each; it gets a child of its own only where there is none. The main method
    comes first: MLflow's comparison opens with that metric.
    """
    own: dict[Cell, Metrics] = {}
    for score in sorted(scores, key=lambda score: score.rank is None):
        names = dict.fromkeys((score.method, score.called))
        own.setdefault(score.cell, {}).update(score.metrics(*names))
    shared = {w for w in own if any(w != cell and w.serves(cell) for cell in own)}
    return {
        cell: metrics | _merged(own[wide] for wide in own if wide.serves(cell))
        for cell, metrics in own.items()
        if cell not in shared
    }


def _merged(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for part in parts for name, value in part.items()}


def choice(part: Part) -> dict[str, str]:
    """Return what a rule took and why, if something was left to one."""
    return {"chosen": part.method, "why": part.reason} if part.reason else {}


def stage_keys(record: RunRecord, cell: Cell) -> dict[str, str]:
    """Return the key of every stage that ``cell`` was computed from."""
    return {step["stage"]: step["key"] for step in _serving(record, cell)}


def _serving(record: RunRecord, cell: Cell) -> list[dict[str, Any]]:
    """Return the steps that serve a cell, the narrowest of a stage last."""
    found = [step for step in record.steps if Cell.of(step["cell"]).serves(cell)]
    return sorted(found, key=lambda step: len(Cell.of(step["cell"]).pairs))


def plan_rows(record: RunRecord) -> list[dict[str, str]]:
    """Return what was planned, as ``plan --json`` prints it."""
    return [one | {"cell": str(Cell.of(one["cell"]))} for one in record.steps]


def artifacts(project: Project, record: RunRecord, cell: Cell) -> list[Artifact]:
    """Return the artifacts that a cell was computed from, but what `gc` took."""
    every = (artifact(project, s["stage"], s["key"]) for s in _serving(record, cell))
    return [one for one in every if there(one.path)]


def params(record: RunRecord, cell: Cell, stored: Iterable[Artifact]) -> dict[str, str]:
    """Return exactly what was read on the way to a cell, named as ``--set`` names it.

    ``stored`` are the cell's artifacts: their manifests hold what their stages read.
    """
    read = _merged(one.manifest["components"]["params"] for one in stored)
    known = {*record.config, *cell.to_json()}  # a release's number is no setting
    own = {n: v for n, v in _flat(read) if n.partition(".")[0] in known}
    own = {n: v for n, v in own.items() if n.rpartition(".")[2] != "label"}
    every = (own | cell.to_json()).items()  # a column's name may hold any sign
    texts = {_allowed(name): _text(value) for name, value in every}
    return {name: text for name, text in texts.items() if len(text) <= _LONGEST}


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif value is not None:
            yield prefix + name, value


def _text(value: Any) -> str:
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)
