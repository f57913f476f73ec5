"""A pipeline as steps: which cells it expands to, what each reads, the key of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from itertools import product
from typing import Any

from curvote.datasets.registry import DATASETS
from curvote.protocols.registry import PROTOCOLS
from curvote.protocols.stage import Stage
from curvote.run import fingerprint, identity
from curvote.run.config import Configured
from curvote.run.contracts import VERSION
from curvote.run.schema import Pipeline
from curvote.run.step import SHARED, Cell, Raw, Release, Standing, Step

_CHAIN = "curvote.run.stages"
RELEASED, COLLECTED = f"{_CHAIN}.released", f"{_CHAIN}.collected"

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
    "min_max": ("project.lower", "project.upper", "project.bounds"),
}


def stages_of(pipeline: Pipeline) -> tuple[Stage, ...]:
    """Return the chain: the shared stages, then the protocol's."""
    protocol = import_module(PROTOCOLS[pipeline.protocol])
    if not pipeline.production:
        return (INGEST, PROJECT, *protocol.STAGES)
    module = COLLECTED if pipeline.intake else RELEASED
    own = (replace(s, module=module) if s.message else s for s in protocol.PRODUCTION)
    return (INGEST, PROJECT, *own)


def expand(
    configured: Configured, raw: tuple[Raw, ...], standing: Standing | None = None
) -> Iterator[Step]:
    """Yield every step with its key; inputs come before the steps that read them.

    In production the steps up to the last release take their names from ``standing``.
    """
    made: dict[tuple[str, Cell], Step] = {}
    stages = stages_of(configured.pipeline)
    last = max((i for i, s in enumerate(stages) if s.message), default=-1)
    for place, stage in enumerate(stages):
        for cell in _cells(stage, configured.pipeline):
            inputs = {name: _input(made, name, cell) for name in stage.inputs}
            step = _step(configured, stage, cell, inputs, raw)
            if standing and place <= last:
                step = _frozen(configured, step, standing)
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
    raw: tuple[Raw, ...],
) -> Step:
    own = _conditional(stage, configured.pipeline)
    values = _values(configured, cell)
    params = {name: _dotted(values, name) for name in (*stage.params, *own)}
    varies = "replicates" in params or stage.message  # a release is no shared table
    shared = not varies and all(step.replicates == SHARED for step in inputs.values())
    replicates = SHARED if shared else tuple(range(configured.pipeline.replicates))
    components: dict[str, Any] = {
        "stage": stage.name,
        "contract": VERSION,
        "params": params,
        "inputs": {name: step.key for name, step in inputs.items()},
        "code": fingerprint.of_code([stage.module, *_plugins(stage, values)]),
        "versions": fingerprint.versions(stage.name),
    }
    mine = raw if stage is INGEST else ()
    if mine:
        components["raw"] = {file.name: file.sha256 for file in mine}
    return Step(
        stage=stage,
        cell=cell,
        key=fingerprint.of_json(components)[:32],
        components=components,
        inputs={name: step.key for name, step in inputs.items()},
        replicates=replicates,
        raw=mine,
        private=configured.pipeline.production,
    )


def _frozen(configured: Configured, step: Step, standing: Standing) -> Step:
    """Name a step by what was asked of whom; a release also by its number."""
    values = _values(configured, step.cell, identity.asked(configured.pipeline))
    asked = {name: _dotted(values, name) for name in step.params}
    named: dict[str, Any] = {
        "stage": step.stage.name,
        "asked": {name: value for name, value in asked.items() if value is not None},
        "inputs": step.inputs,
    }
    if step.stage is INGEST:
        named["cohort"] = standing.cohort
    step = replace(step, frozen=True, key=identity.key(named))
    return _numbered(configured, step, named, standing) if step.stage.message else step


def _numbered(
    configured: Configured, step: Step, named: dict[str, Any], standing: Standing
) -> Step:
    base, by_envelope = step.key, configured.pipeline.intake is not None
    number = standing.number(base)
    release = Release(step.stage.message, base, number, by_envelope)
    named = named | {"release": number}
    if by_envelope:
        named["accepted"] = standing.accepted(release.id)
    params = step.params | {"message": step.stage.message, "number": number}
    accounts = configured.pipeline.ledger
    about = {
        "pipeline": configured.name,
        "population": configured.pipeline.population,
        "cohort": standing.cohort,
        "cap": accounts.per_client.model_dump() if accounts else None,
    }
    components = step.components | {"params": params, "release": about}
    key = identity.key(named)
    return replace(step, key=key, release=release, components=components)


def _conditional(stage: Stage, pipeline: Pipeline) -> tuple[str, ...]:
    """Return the parameters that count only for some configurations."""
    if stage is INGEST:
        simulated = import_module(DATASETS[pipeline.source["name"]]).SIMULATED
        return _WHOLE_SIMULATION if simulated else ()
    if stage is PROJECT:
        constants = _CONSTANTS.get(pipeline.project.rescale, ())
        return (*constants, *(_VOLUNTEERS if pipeline.project.volunteers else ()))
    return ()


def _values(
    configured: Configured, cell: Cell, given: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the configuration, or the ``given`` form of it, as this cell sees it."""
    values = dict(configured.values() if given is None else given)
    learners = (learner.model_dump() for learner in configured.pipeline.learners)
    mine = [learner for learner in learners if learner["label"] == cell.learner]
    values |= {"epsilon": cell.epsilon, "learner": mine[0] if mine else {}}
    return values


def _dotted(values: Mapping[str, Any], name: str) -> Any:
    here: Any = values
    for part in name.split("."):
        here = here.get(part) if here else None
    return here


def _plugins(stage: Stage, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the modules that registries name for this cell."""
    for registry, key in stage.plugins:
        module, _, table = registry.partition(":")
        path: str = getattr(import_module(module), table)[_dotted(values, key)]
        yield path.partition(":")[0]
