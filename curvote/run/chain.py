"""A pipeline as steps: which cells it expands to, what each reads, the key of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from typing import Any

from curvote.datasets.registry import DATASETS
from curvote.protocols.registry import PROTOCOLS
from curvote.protocols.stage import Stage
from curvote.run import fingerprint
from curvote.run.config import Configured
from curvote.run.contracts import VERSION
from curvote.run.schema import Pipeline

SHARED: tuple[int, ...] = (-1,)
_CHAIN = "curvote.run.stages"

INGEST = Stage(
    "ingest",
    f"{_CHAIN}.ingest",
    params=("source",),
    plugins=(("curvote.datasets.registry:DATASETS", "source.name"),),
    tables=("clients",),
)
PROJECT = Stage(
    "project",
    f"{_CHAIN}.project",
    inputs=("ingest",),
    params=(
        "project.basis",
        "project.size",
        "project.order",
        "project.coordinates",
        "project.rescale",
    ),
    tables=("encoded", "constants"),
)
_WHOLE_SIMULATION = ("clients", "seed", "replicates")
_VOLUNTEERS = (*_WHOLE_SIMULATION, "source.groups")
_CONSTANTS = {
    "tanh": ("project.centre", "project.scale"),
    "min_max": ("project.lower", "project.upper"),
}


@dataclass(frozen=True)
class Raw:
    """The publisher's file that ingest reads; its digest counts, its path does not."""

    sha256: str
    path: str
    origin: str


@dataclass(frozen=True)
class Cell:
    """One (protocol, epsilon, learner) of a pipeline; None where a stage shares it."""

    protocol: str | None = None
    epsilon: float | None = None
    learner: str | None = None

    def __str__(self) -> str:
        named = {"epsilon": self.epsilon, "learner": self.learner}
        parts = (f"{k}={_short(v)}" for k, v in named.items() if v is not None)
        return " ".join(parts)


def _short(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


@dataclass(frozen=True)
class Step:
    """One artifact of a plan: what makes it, what names it, what will be done."""

    stage: Stage
    cell: Cell
    key: str
    components: dict[str, Any]
    inputs: dict[str, str]
    replicates: tuple[int, ...]
    raw: Raw | None = None
    action: str = "run"
    reason: str = ""
    forced: bool = False

    @property
    def id(self) -> tuple[str, str]:
        """The stage and the key: cells that are computed alike share it."""
        return self.stage.name, self.key

    @property
    def name(self) -> str:
        """The stage, with its cell where it has one."""
        return f"{self.stage.name} {self.cell}".strip()

    @property
    def params(self) -> dict[str, Any]:
        """The resolved parameters that the stage's functions are given."""
        params: dict[str, Any] = self.components["params"]
        return params

    def row(self) -> dict[str, str]:
        """Return the step as ``plan --json`` prints it."""
        return {
            "stage": self.stage.name,
            "cell": str(self.cell),
            "key": self.key,
            "action": self.action,
            "reason": self.reason,
        }


def stages_of(pipeline: Pipeline) -> tuple[Stage, ...]:
    """Return the chain: the shared stages, then the protocol's."""
    protocol = import_module(PROTOCOLS[pipeline.protocol])
    return (INGEST, PROJECT, *protocol.STAGES)


def expand(configured: Configured, raw: Raw | None) -> Iterator[Step]:
    """Yield every step with its key; inputs come before the steps that read them."""
    made: dict[tuple[str, Cell], Step] = {}
    for stage in stages_of(configured.pipeline):
        for cell in _cells(stage, configured.pipeline):
            inputs = {name: _input(made, name, cell) for name in stage.inputs}
            step = _step(configured, stage, cell, inputs, raw)
            made[stage.name, cell] = step
            yield step


def _cells(stage: Stage, pipeline: Pipeline) -> Iterator[Cell]:
    if not stage.axes:
        yield Cell()
        return
    learners = [learner.label for learner in pipeline.learners]
    wanted: list[str | None] = [*learners] if "learner" in stage.axes else [None]
    for epsilon, learner in product(pipeline.epsilon, wanted):
        yield Cell(pipeline.protocol, epsilon, learner)


def _input(made: Mapping[tuple[str, Cell], Step], stage: str, cell: Cell) -> Step:
    """Return the step of ``stage`` that serves ``cell``: the most special one."""
    wider = (cell, Cell(cell.protocol, cell.epsilon), Cell())
    return next(made[stage, c] for c in wider if (stage, c) in made)


def _step(
    configured: Configured,
    stage: Stage,
    cell: Cell,
    inputs: Mapping[str, Step],
    raw: Raw | None,
) -> Step:
    own = _conditional(stage, configured.pipeline)
    values = _values(configured, cell)
    params = {name: _dotted(values, name) for name in (*stage.params, *own)}
    shared = "replicates" not in params and all(
        step.replicates == SHARED for step in inputs.values()
    )
    replicates = SHARED if shared else tuple(range(configured.pipeline.replicates))
    components: dict[str, Any] = {
        "stage": stage.name,
        "contract": VERSION,
        "params": params,
        "inputs": {name: step.key for name, step in inputs.items()},
        "code": fingerprint.of_code([stage.module, *_plugins(stage, values)]),
        "versions": fingerprint.versions(stage.name),
    }
    mine = raw if stage is INGEST else None
    if mine:
        components["raw"] = mine.sha256
    return Step(
        stage=stage,
        cell=cell,
        key=fingerprint.of_json(components)[:32],
        components=components,
        inputs={name: step.key for name, step in inputs.items()},
        replicates=replicates,
        raw=mine,
    )


def _conditional(stage: Stage, pipeline: Pipeline) -> tuple[str, ...]:
    """Return the parameters that count only for some configurations."""
    if stage is INGEST:
        simulated = import_module(DATASETS[pipeline.source["name"]]).SIMULATED
        return _WHOLE_SIMULATION if simulated else ()
    if stage is PROJECT:
        constants = _CONSTANTS.get(pipeline.project.rescale, ())
        return (*constants, *(_VOLUNTEERS if pipeline.project.volunteers else ()))
    return ()


def _values(configured: Configured, cell: Cell) -> dict[str, Any]:
    """Return the configuration as this cell sees it."""
    values = configured.values()
    learners = (learner.model_dump() for learner in configured.pipeline.learners)
    mine = [learner for learner in learners if learner["label"] == cell.learner]
    values |= {"epsilon": cell.epsilon, "learner": mine[0] if mine else {}}
    return values


def _dotted(values: Mapping[str, Any], name: str) -> Any:
    here: Any = values
    for part in name.split("."):
        here = here.get(part)
    return here


def _plugins(stage: Stage, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the modules that registries name for this cell."""
    for registry, key in stage.plugins:
        module, _, table = registry.partition(":")
        path: str = getattr(import_module(module), table)[_dotted(values, key)]
        yield path.partition(":")[0]
