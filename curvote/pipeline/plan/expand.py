"""Expansion of a pipeline into steps: stages, cells, inputs and keys."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import product
from typing import Any

from curvote.base.registry import Registry
from curvote.chain.axis import Cell, axis_combinations
from curvote.chain.lookup import find_system
from curvote.chain.measure import SCORES
from curvote.chain.stage import PREVIOUS, SHARED, STAGE_PARTS, Stage, StageContext
from curvote.chain.system import Part
from curvote.data.lookup import BALANCE, is_remote
from curvote.messages.message import messages_of
from curvote.pipeline.config.file import ConfiguredPipeline
from curvote.pipeline.config.schema import Pipeline
from curvote.pipeline.config.settings import dotted_value, resolve_parts
from curvote.pipeline.config.source import RawInput, has_unpublished_records
from curvote.pipeline.plan import definitions
from curvote.pipeline.plan.step import (
    VERSION,
    Release,
    ReleaseState,
    Step,
    library_versions,
    stated_settings,
    step_key,
)


def stages_of(pipeline: Pipeline) -> tuple[Stage, ...]:
    """Return the stages of a pipeline's system for the pipeline's mode."""
    chain = find_system(pipeline.protocol)
    stages = chain.stages
    if pipeline.production:
        stages = chain.release_stages(with_judges=bool(pipeline.judges))
    pairs = ((s, [t for t in s.tables if t.when(pipeline)]) for s in stages)
    every = tuple(replace(stage, tables=tuple(tables)) for stage, tables in pairs)
    if pipeline.intake is None:
        return every
    return tuple(replace(s, module=s.collected or s.module) for s in every)


def final_stages(pipeline: Pipeline) -> set[str]:
    """Return the names of the stages that no other stage reads."""
    stages = stages_of(pipeline)
    read = {name.partition("@")[0] for stage in stages for name in stage.inputs}
    return {stage.name for stage in stages} - read


def expand(
    configured: ConfiguredPipeline,
    raw: tuple[RawInput, ...],
    release_state: ReleaseState | None = None,
    further: Sequence[RawInput] = (),
) -> Iterator[Step]:
    """Yield every step with its key; inputs come before the steps that read them.

    ``raw`` are the source's files, ``further`` those that settings name. In production
    the steps up to the last release take their names from ``release_state``, but for
    what reads a public file of a source whose secrets are elsewhere.
    """
    for setting in configured.settings:
        steps: dict[tuple[str, Cell], Step] = {}
        every = list(resolve_parts(setting.pipeline))
        apart = _unshared_stages(every)
        for part in every:
            pipeline, stages = part.settings, stages_of(part.settings)
            last = max((i for i, s in enumerate(stages) if s.message), default=-1)
            for place, stage, cell in _stage_cells(stages, setting.name, part, apart):
                if not stage.axes and (stage.name, cell) in steps:
                    continue  # what every part shares
                inputs = dict(_input_steps(steps, stage, cell, pipeline))
                named = stage.files(pipeline)
                own_files = tuple(file for file in further if file.name in named)
                files = raw if stage.raw else own_files
                step = _make_step(pipeline, stage, cell, inputs, files)
                public = step.raw and is_remote(pipeline.source)
                if release_state and place <= last and not public:
                    step = _freeze_step(configured.name, pipeline, step, release_state)
                steps[stage.name, cell] = step
                yield step


def _unshared_stages(every: Sequence[Part]) -> set[str]:
    """Return the stages without axes that parts cannot share.

    They read values in which parts differ, or what such a stage makes.
    """
    read: dict[str, dict[str, Any]] = {}
    unshared: set[str] = set()
    shared = [
        (part.settings, stage)
        for part in every
        for stage in stages_of(part.settings)
        if not stage.axes and len(every) > 1
    ]
    for settings, stage in shared:
        params = _read_parameters(stage, settings, cell_values(settings, Cell()))
        if read.setdefault(stage.name, params) != params:
            unshared.add(stage.name)
    for _, stage in shared:
        if unshared & {*stage.inputs}:
            unshared.add(stage.name)
    return unshared


def _stage_cells(
    stages: Sequence[Stage], setting: str | None, part: Part, apart: Container[str]
) -> Iterator[tuple[int, Stage, Cell]]:
    """Yield (position, stage, cell); a successive axis turns slowest."""
    numbered = list(enumerate(stages))
    chain = find_system(part.settings.protocol)
    slow = [axis for axis in chain.axes if axis.successive]
    fast = [axis for axis in chain.axes if not axis.successive]
    for axes in ([], slow) if slow else ([],):
        for turn in axis_combinations(axes, part.settings):
            for place, stage in numbered:
                if {axis.name for axis in slow} & {*stage.axes} != {*turn}:
                    continue
                alone = part.pairs if stage.name in apart else ()
                shared_cell = Cell.from_mapping({"setting": setting, **dict(alone)})
                if not stage.axes and SCORES not in stage.tables:
                    yield place, stage, shared_cell.with_values(**turn)
                    continue  # scores are one system's
                labels = {"protocol": part.settings.called, **shared_cell.to_json()}
                own_axes = [axis for axis in fast if axis.name in stage.axes]
                for values in axis_combinations(own_axes, part.settings):
                    if stage.when(part.settings, values):
                        cell = Cell.from_mapping({**labels, **values})
                        yield place, stage, cell.with_values(**turn)


def _input_steps(
    steps: Mapping[tuple[str, Cell], Step], stage: Stage, cell: Cell, pipeline: Pipeline
) -> Iterator[tuple[str, Step]]:
    """Yield (input, step); what the first of successive values lacks is left out."""
    for name in stage.inputs:
        source = name.partition("@")[0]
        there = [c for (stage_name, c) in steps if stage_name == source]
        for called, wanted in _input_cells(name, stage, cell, pipeline):
            match = wanted.most_specific(there)
            yield called, steps[source, match or wanted]


def _input_cells(
    name: str, stage: Stage, cell: Cell, pipeline: Pipeline
) -> Iterator[tuple[str, Cell]]:
    """Yield name and cell of each input that ``name`` stands for."""
    source, _, over = name.partition("@")
    if not over:
        yield name, cell
        return
    axes = find_system(pipeline.protocol).axes
    if over == PREVIOUS:
        (axis,) = (a for a in axes if a.successive and a.name in stage.axes)
        values = list(axis.values(pipeline))
        place = values.index(cell[axis.name])
        if place:
            yield name, cell.with_values(**{axis.name: values[place - 1]})
        return
    (axis,) = (a for a in axes if a.name == over)
    for value in axis.values(pipeline):
        yield f"{source}@{value}", cell.with_values(**{over: value})


def _make_step(
    pipeline: Pipeline,
    stage: Stage,
    cell: Cell,
    inputs: Mapping[str, Step],
    files: tuple[RawInput, ...],
) -> Step:
    values = cell_values(pipeline, cell)
    params = _read_parameters(stage, pipeline, values)
    every = find_system(pipeline.protocol).index
    indices = [i for i in every if stage.index is None or i.name in stage.index]
    sizes = tuple(index.size(pipeline) for index in every)
    varies = any(f"{index.name}s" in params for index in indices) or stage.message
    shared = not varies and all(step.places == (SHARED,) for step in inputs.values())
    keys = {name: step.key for name, step in inputs.items()}
    components: dict[str, Any] = {
        "stage": stage.name,
        "contract": VERSION,
        "params": params,
        "inputs": keys,
        "code": _code_digests(stage, values),
        "versions": library_versions(stage.libraries + stage.extras(pipeline)),
    }
    if files:
        components["raw"] = {  # marked, if it is keyed
            f.name: f.public_digest if "sha256" in f.key_entry else f.key_entry
            for f in files
        }
    return Step(
        stage=stage,
        cell=cell,
        key=step_key(components),
        components=components,
        inputs=dict(keys),
        index=tuple(index.name for index in indices),
        sizes=sizes,
        places=(SHARED,)
        if shared
        else tuple(product(*map(range, sizes[: len(indices)]))),
        raw=files,
        private=pipeline.production,
        unpublished=has_unpublished_records(pipeline),
    )


def _read_parameters(
    stage: Stage, pipeline: Pipeline, values: Mapping[str, Any]
) -> dict[str, Any]:
    source = {k: v for k, v in values["source"].items() if k != BALANCE}
    return {
        n: source if n == "source" else dotted_value(values, n)
        for n in (*stage.params, *stage.also(pipeline))
    }


def _freeze_step(
    name: str, pipeline: Pipeline, step: Step, release_state: ReleaseState
) -> Step:
    """Return a production step whose key is made of settings and cohort."""
    values = cell_values(pipeline, step.cell, stated_settings(pipeline))
    settings = {name: dotted_value(values, name) for name in step.params}
    named: dict[str, Any] = {
        "stage": step.stage.name,
        "asked": {name: value for name, value in settings.items() if value is not None},
    }
    if not (step.stage.message and _is_independent(pipeline, step)):
        named["inputs"] = step.inputs
    if step.stage.raw:
        named["cohort"] = release_state.cohort
    elif step.raw:
        named["files"] = step.components["raw"]
    step = replace(step, frozen=True, key=step_key(named))
    if not step.stage.message:
        return step
    base, by_envelope = step.key, pipeline.intake is not None
    number = release_state.number(base)
    release = Release(step.stage.message, base, number, by_envelope)
    named = named | {"release": number}
    if by_envelope:
        named["accepted"] = release_state.accepted(release.id)
    params = step.params | {"message": step.stage.message, "number": number}
    params |= {"accepted": named["accepted"]} if by_envelope else {}
    accounts = pipeline.ledger
    about = {
        "pipeline": name,
        "population": pipeline.population,
        "cohort": release_state.cohort,
        "cap": accounts.per_client.model_dump() if accounts else None,
        "witnesses": release_state.witnesses,
    }
    components = step.components | {"params": params, "release": about}
    return replace(step, key=step_key(named), release=release, components=components)


def _is_independent(pipeline: Pipeline, step: Step) -> bool:
    """Return whether a release does not depend on what its step reads.

    Of a ``whole`` one the step reads all that its sender is asked: another sender more
    is none for it. One that is ``tied`` comes from elsewhere, of a secret only: more
    or better public columns ask for no other.
    """
    kind = messages_of(pipeline.protocol)[step.stage.message]
    return kind.per_table or (kind.per_record and pipeline.intake is not None)


def cell_values(
    pipeline: Pipeline, cell: Cell, base: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the configuration, or its form ``given``, as a cell reads it."""
    chain = find_system(pipeline.protocol)
    values = pipeline.model_dump(mode="json") if base is None else dict(base)
    values |= {axis.name: axis.read(pipeline, cell[axis.name]) for axis in chain.axes}
    values |= {f"{index.name}s": index.size(pipeline) for index in chain.index}
    return chain.normalize(values)


def _code_digests(stage: Stage, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the digests of the code that counts for a stage.

    That is all that its functions reach, and `StageContext`, which they are given.
    """
    # With an entry of a registry counts what it may call by name.
    named: dict[str, str] = {}
    for table, key in stage.plugins:
        module, _, name = table.partition(":")
        entries: Registry = getattr(import_module(module), name)
        for entry in entries.reach(str(dotted_value(values, key))) if key else entries:
            named[f"{table}.{entry}"] = entries[entry]
    roots = [f"{stage.module}{ending}" for ending in STAGE_PARTS.values()]
    roots.append(f"{StageContext.__module__}:{StageContext.__name__}")
    # Two entries may be classes of one module: which of them counts, too.
    classes = {name: path for name, path in named.items() if ":" in path}
    code = definitions.of_code([*roots, *named.values()])
    for place in named.values():
        code |= definitions.of_plugin(place)
    return code | classes
