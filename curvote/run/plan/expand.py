"""A pipeline as steps: which cells it expands to, what each reads, the key of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from itertools import product
from typing import Any

from curvote.datasets.lookup import module
from curvote.datasets.registry import DATASETS
from curvote.protocols.registry import PROTOCOLS
from curvote.protocols.stage import Stage
from curvote.run.config.choosing import parts
from curvote.run.config.file import Configured, Setting
from curvote.run.config.published import published
from curvote.run.config.schema import Pipeline
from curvote.run.config.settings import dotted
from curvote.run.config.source import unpublished
from curvote.run.plan import fingerprint, identity
from curvote.run.plan.step import SHARED, Cell, Raw, Release, Standing, Step
from curvote.run.store.contracts import VERSION

_CHAIN = "curvote.protocols.stages"
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
    "standard": ("project.centre", "project.scale"),
    "min_max": ("project.lower", "project.upper", "project.bounds"),
}


def stages_of(pipeline: Pipeline) -> tuple[Stage, ...]:
    """Return the chain: the shared stages, then the protocol's."""
    protocol = import_module(PROTOCOLS[pipeline.protocol])
    if not pipeline.production:
        return (INGEST, PROJECT, *protocol.STAGES)
    kind = COLLECTED if pipeline.intake else RELEASED
    own = (replace(s, module=kind) if s.message else s for s in protocol.PRODUCTION)
    return (INGEST, PROJECT, *own)


def expand(
    configured: Configured, raw: tuple[Raw, ...], standing: Standing | None = None
) -> Iterator[Step]:
    """Yield every step with its key; inputs come before the steps that read them.

    In production the steps up to the last release take their names from ``standing``.
    """
    for setting in configured.settings:
        yield from _expand_one(configured.name, setting, raw, standing)


def _expand_one(
    name: str, setting: Setting, raw: tuple[Raw, ...], standing: Standing | None
) -> Iterator[Step]:
    made: dict[tuple[str, Cell], Step] = {}
    for pipeline in parts(setting.pipeline):
        stages = stages_of(pipeline)
        last = max((i for i, s in enumerate(stages) if s.message), default=-1)
        for place, stage, cell in _places(stages, replace(setting, pipeline=pipeline)):
            if not stage.axes and (stage.name, cell) in made:
                continue  # what every epsilon shares
            inputs = dict(_inputs(made, stage, cell))
            step = _step(pipeline, stage, cell, inputs, raw)
            if standing and place <= last:
                step = _frozen(name, pipeline, step, standing)
            made[stage.name, cell] = step
            yield step


def _places(
    stages: tuple[Stage, ...], setting: Setting
) -> Iterator[tuple[int, Stage, Cell]]:
    """Yield (place in the chain, stage, cell), arrival after arrival."""
    numbered = list(enumerate(stages))
    for place, stage in numbered:
        if "arrival" not in stage.axes:
            yield from ((place, stage, cell) for cell in _cells(stage, setting))
    for arrival in range(setting.pipeline.online.arrivals):
        for place, stage in numbered:
            if "arrival" in stage.axes:
                for cell in _cells(stage, setting):
                    yield place, stage, replace(cell, arrival=arrival)


def _cells(stage: Stage, setting: Setting) -> Iterator[Cell]:
    pipeline = setting.pipeline
    if not stage.axes:
        yield Cell(setting=setting.name)
        return
    labels = [learner.label for learner in pipeline.learners]
    learners: list[str | None] = [*labels] if "learner" in stage.axes else [None]
    epsilons: list[float | None] = [*pipeline.epsilon]
    if "epsilon" not in stage.axes:
        epsilons = [None]
    for epsilon, learner in product(epsilons, learners):
        yield Cell(pipeline.called, epsilon, learner, setting.name)


def _inputs(
    made: Mapping[tuple[str, Cell], Step], stage: Stage, cell: Cell
) -> Iterator[tuple[str, Step]]:
    """Yield (input, step); what the first arrival would find before it is left out."""
    for name in stage.inputs:
        source, _, previous = name.partition("@")
        if previous and not cell.arrival:
            continue
        arrival = (cell.arrival or 0) - 1 if previous else cell.arrival
        wanted = replace(cell, arrival=arrival)
        yield name, next(made[source, c] for c in wanted.wider() if (source, c) in made)


def _step(
    pipeline: Pipeline,
    stage: Stage,
    cell: Cell,
    inputs: Mapping[str, Step],
    raw: tuple[Raw, ...],
) -> Step:
    own = _conditional(stage, pipeline)
    values = _values(pipeline, cell)
    params = {name: dotted(values, name) for name in (*stage.params, *own)}
    varies = "replicates" in params or stage.message  # a release is no shared table
    shared = not varies and all(step.replicates == SHARED for step in inputs.values())
    replicates = SHARED if shared else tuple(range(_instances(stage, pipeline)))
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
        components["raw"] = {file.name: _counted(file) for file in mine}
    return Step(
        stage=stage,
        cell=cell,
        key=fingerprint.of_json(components)[:32],
        components=components,
        inputs={name: step.key for name, step in inputs.items()},
        replicates=replicates,
        raw=mine,
        private=pipeline.production,
        unpublished=unpublished(pipeline),
    )


def _counted(file: Raw) -> str | dict[str, str]:
    """Return what counts of a file in a key: a keyed digest says that it is one."""
    return file.told if "sha256" in file.counted else file.counted


def _instances(stage: Stage, pipeline: Pipeline) -> int:
    """Return how often a stage is repeated: for each server of each replicate.

    Only true scores are asked for a replicate as a whole.
    """
    servers = 1 if stage.name == "report" else servers_of(pipeline)
    return pipeline.replicates * servers


def servers_of(pipeline: Pipeline) -> int:
    """Return how many servers the source's clients belong to."""
    dataset = module(pipeline.source["name"])
    if not hasattr(dataset, "servers"):
        return 1
    return int(dataset.servers(dataset.Parameters.model_validate(pipeline.source)))


def _frozen(name: str, pipeline: Pipeline, step: Step, standing: Standing) -> Step:
    """Name a step by what was asked of whom; a release also by its number."""
    values = _values(pipeline, step.cell, identity.asked(pipeline))
    asked = {name: dotted(values, name) for name in step.params}
    named: dict[str, Any] = {
        "stage": step.stage.name,
        "asked": {name: value for name, value in asked.items() if value is not None},
        "inputs": step.inputs,
    }
    if step.stage is INGEST:
        named["cohort"] = standing.cohort
    step = replace(step, frozen=True, key=identity.key(named))
    if not step.stage.message:
        return step
    return _numbered(name, pipeline, step, named, standing)


def _numbered(
    name: str, pipeline: Pipeline, step: Step, named: dict[str, Any], standing: Standing
) -> Step:
    base, by_envelope = step.key, pipeline.intake is not None
    number = standing.number(base)
    release = Release(step.stage.message, base, number, by_envelope)
    named = named | {"release": number}
    if by_envelope:
        named["accepted"] = standing.accepted(release.id)
    params = step.params | {"message": step.stage.message, "number": number}
    params |= {"accepted": named["accepted"]} if by_envelope else {}
    accounts = pipeline.ledger
    about = {
        "pipeline": name,
        "population": pipeline.population,
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
    pipeline: Pipeline, cell: Cell, given: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the configuration, or the ``given`` form of it, as this cell sees it."""
    values = pipeline.model_dump(mode="json") if given is None else dict(given)
    learners = (learner.model_dump() for learner in pipeline.learners)
    mine = [learner for learner in learners if learner["label"] == cell.learner]
    values |= {"epsilon": cell.epsilon, "learner": mine[0] if mine else {}}
    values |= {"arrival": cell.arrival, "servers": servers_of(pipeline)}
    values |= {"label": pipeline.called}
    return published(values)


def _plugins(stage: Stage, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the modules that registries name for this cell."""
    for registry, key in stage.plugins:
        place, _, table = registry.partition(":")
        entry, _, _ = str(dotted(values, key)).partition(":")
        path: str = getattr(import_module(place), table)[entry]
        yield path.partition(":")[0]
