"""What a run says of its cells: scores, parameters, stage keys, a place on the x-axis.

Whatever a system says of itself (its axes, metrics and methods) is asked for here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from curvote.reporting.methods import ARMS
from curvote.run.config.choosing import chosen
from curvote.run.config.settings import named
from curvote.run.history import RunRecord
from curvote.run.plan.step import Cell
from curvote.run.project import Project
from curvote.run.store.artifacts import Artifact, artifact

Row = Mapping[str, Any]
Metrics = dict[str, float]

# What stands on the x-axis of a figure.
X = "epsilon"
_MAIN = ("federated", "online", "mrma", *ARMS, "votes", "clean", "majority")
_REFERENCES = ("majority", "clean")
_LONGEST = 250  # letters of a parameter


@dataclass(frozen=True)
class Score:
    """A row of ``scores --json``, and what its system says of it.

    ``rank`` is the method's place among those that may stand in a headline (of a cell
    the first that it has does), None where it is none of them. ``called`` is one name
    for what takes that place in all cells. A ``reference`` is what others are held
    against. ``percent`` says how the metric is shown.
    """

    cell: Cell
    metric: str
    method: str
    value: float
    se: float | None
    group: str
    rank: int | None
    called: str
    reference: bool
    percent: bool

    def metrics(self, *names: str) -> Metrics:
        """Return value and standard error as ``misclassification.NAME`` and ``..._se``.

        The name is the method's where no other is given.
        """
        group = f"group-{self.group}" if self.group else ""
        values = {self.metric: self.value, f"{self.metric}_se": self.se}
        return {
            ".".join(filter(None, (metric, name, group))): float(value)
            for metric, value in values.items()
            for name in names or (self.method,)
            if value is not None and math.isfinite(value)
        }

    @property
    def shown(self) -> str:
        """The value as people read it: 12.7 %."""
        return f"{100 * self.value:.1f} %" if self.percent else f"{self.value:.3g}"


def scores_of(record: RunRecord, rows: Iterable[Row]) -> list[Score]:
    """Return the rows of ``scores --json`` as scores, in their order."""
    return [_score(row) for row in rows]


def _score(row: Row) -> Score:
    method = row["method"]
    return Score(
        cell=_cell(row),
        metric=row.get("metric", "misclassification"),
        method=method,
        value=row.get("value", row["misclassification"]),
        se=row["se"],
        group=row.get("group", ""),
        rank=_rank(row),
        # What `auto` takes differs from epsilon to epsilon: there it is the protocol.
        called=row["protocol"] if method in ARMS else method,
        reference=method in _REFERENCES,
        percent=True,
    )


def _rank(row: Row) -> int | None:
    beside = row["method"] in _REFERENCES and row["method"] != row["protocol"]
    known = row["method"] in _MAIN and not beside
    return _MAIN.index(row["method"]) if known else None


def _cell(row: Row) -> Cell:
    setting = named(row.get("setting", {}))
    own = row["protocol"], row["epsilon"], row["learner"]
    return Cell(*own, setting, row.get("arrival"))


def final_of(project: Project, record: RunRecord) -> Callable[[Cell], Any]:
    """Return what makes the final model of a cell, or None where it has none."""
    from curvote.run import results

    ends = results.cells(record)
    return lambda cell: (
        results.final_model(project, record, cell) if cell in ends else None
    )


def choice(record: RunRecord, cell: Cell) -> dict[str, str]:
    """Return what a rule took for a cell and why, if it was left to one."""
    asked = cell.protocol or "", cell.epsilon or 0.0
    taken = chosen(record.config).get(asked)
    return {"chosen": taken.method, "why": taken.reason} if taken else {}


def axes(cell: Cell) -> dict[str, Any]:
    """Return a cell's coordinates by their axes, those that it has."""
    return {k: v for k, v in asdict(cell).items() if v is not None}


def line(cell: Cell) -> Cell:
    """Return what a cell has in common with its neighbours on the x-axis."""
    return replace(cell, epsilon=None)


def serves(wide: Cell, cell: Cell) -> bool:
    """Say whether what holds for ``wide`` holds for ``cell``, too."""
    return axes(wide).items() <= axes(cell).items()


def step(cell: Cell) -> int:
    """Return a cell's place on the x-axis as MLflow wants it: a whole number.

    Privacy levels are fractions, so a step is a thousandth of epsilon: 500 is 0.5.
    Counts are steps as they are. Without privacy there is no place: 0.
    """
    x = axes(cell).get(X, 0)
    return round(1000 * x) if isinstance(x, float) else int(x)


def by_cell(scores: Iterable[Score]) -> dict[Cell, Metrics]:
    """Return the metrics of each child: its own and those that it shares with others.

    What holds for several cells, such as the majority's for all learners, is copied
    into each; it gets a child of its own only where there is none.
    """
    own: dict[Cell, Metrics] = {}
    for score in scores:
        names = dict.fromkeys((score.method, score.called))
        own.setdefault(score.cell, {}).update(score.metrics(*names))
    shared = {w for w in own if any(w != cell and serves(w, cell) for cell in own)}
    return {
        cell: _merged(own[wide] for wide in own if serves(wide, cell))
        for cell in own
        if cell not in shared
    }


def _merged(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for part in parts for name, value in part.items()}


def stage_keys(record: RunRecord, cell: Cell) -> dict[str, str]:
    """Return the key of every stage that ``cell`` was computed from."""
    return {step["stage"]: step["key"] for step in _serving(record, cell)}


def _serving(record: RunRecord, cell: Cell) -> list[dict[str, Any]]:
    """Return the steps that serve a cell, the narrowest of a stage last."""
    found = [step for step in record.steps if serves(Cell(**step["cell"]), cell)]
    return sorted(found, key=lambda step: len(axes(Cell(**step["cell"]))))


def plan_rows(record: RunRecord) -> list[dict[str, str]]:
    """Return what was planned, as ``plan --json`` prints it."""
    return [one | {"cell": str(Cell(**one["cell"]))} for one in record.steps]


def artifacts(project: Project, record: RunRecord, cell: Cell) -> list[Artifact]:
    """Return the artifacts that a cell was computed from, but what `gc` took."""
    every = (artifact(project, s["stage"], s["key"]) for s in _serving(record, cell))
    return [one for one in every if one.path.is_dir()]


def params(record: RunRecord, cell: Cell, stored: Iterable[Artifact]) -> dict[str, str]:
    """Return exactly what was read on the way to a cell, named as ``--set`` names it.

    ``stored`` are the cell's artifacts: their manifests hold what their stages read.
    """
    read = _merged(one.manifest["components"]["params"] for one in stored)
    known = {*record.config, "learner"}  # a release's number is no setting
    own = {n: v for n, v in _flat(read) if n.partition(".")[0] in known}
    own = {n: v for n, v in own.items() if n.rpartition(".")[2] != "label"}
    texts = {name: _text(value) for name, value in (own | axes(cell)).items()}
    return {name: text for name, text in texts.items() if len(text) <= _LONGEST}


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif value is not None:
            yield prefix + name, value


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
