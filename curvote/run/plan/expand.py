"""A pipeline as steps: which cells it expands to, what each reads, the key of each."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import product
from typing import Any

from curvote.chain.axis import Cell, combinations
from curvote.chain.lookup import system
from curvote.chain.measure import SCORES
from curvote.chain.stage import FUNCTIONS, PREVIOUS, SHARED, Here, Place, Stage
from curvote.chain.system import Part, System
from curvote.datasets.lookup import remote
from curvote.protocols.message import messages
from curvote.run.config.file import Configured, Setting
from curvote.run.config.parts import parts
from curvote.run.config.schema import Pipeline
from curvote.run.config.settings import dotted
from curvote.run.config.source import Raw, unpublished
from curvote.run.plan import definitions, fingerprint, identity
from curvote.run.plan.stages import stages_of
from curvote.run.plan.step import VERSION, Release, Standing, Step


def expand(
    configured: Configured, raw: tuple[Raw, ...], standing: Standing | None = None
) -> Iterator[Step]:
    """Yield every step with its key; inputs come before the steps that read them.

    In production the steps up to the last release take their names from ``standing``,
    but for what reads a public file of a source whose secrets are elsewhere.
    """
    for setting in configured.settings:
        yield from _expand_one(configured.name, setting, raw, standing)


def _expand_one(
    name: str, setting: Setting, raw: tuple[Raw, ...], standing: Standing | None
) -> Iterator[Step]:
    made: dict[tuple[str, Cell], Step] = {}
    every = list(parts(setting.pipeline))
    apart = _apart(every)
    for part in every:
        pipeline, stages = part.settings, stages_of(part.settings)
        last = max((i for i, s in enumerate(stages) if s.message), default=-1)
        for place, stage, cell in _places(stages, setting.name, part, apart):
            if not stage.axes and (stage.name, cell) in made:
                continue  # what every part shares
            inputs = dict(_inputs(made, stage, cell, pipeline))
            step = _step(pipeline, stage, cell, inputs, raw)
            if standing and place <= last and not _public(pipeline, step):
                step = _frozen(name, pipeline, step, standing)
            made[stage.name, cell] = step
            yield step


def _apart(every: Sequence[Part]) -> set[str]:
    """Return the stages without axes that each part needs for itself.

    They read values in which parts differ, or what such a stage makes.
    """
    read: dict[str, dict[str, Any]] = {}
    found: set[str] = set()
    shared = [
        (part.settings, stage)
        for part in every
        for stage in stages_of(part.settings)
        if not stage.axes and len(every) > 1
    ]
    for settings, stage in shared:
        params = _read(stage, settings, values_of(settings, Cell()))
        if read.setdefault(stage.name, params) != params:
            found.add(stage.name)
    for _, stage in shared:
        if found & {*stage.inputs}:
            found.add(stage.name)
    return found


def _places(
    stages: Sequence[Stage], setting: str | None, part: Part, apart: Container[str]
) -> Iterator[tuple[int, Stage, Cell]]:
    """Yield (place in the chain, stage, cell); a successive axis turns slowest."""
    numbered = list(enumerate(stages))
    own = system(part.settings.protocol)
    slow = [axis for axis in own.axes if axis.successive]
    for axes in ([], slow) if slow else ([],):
        for turn in combinations(axes, part.settings):
            for place, stage in numbered:
                if {axis.name for axis in slow} & {*stage.axes} == {*turn}:
                    alone = part.pairs if stage.name in apart else ()
                    here = Cell.of({"setting": setting, **dict(alone)})
                    for cell in _cells(own, stage, here, part):
                        yield place, stage, cell.with_(**turn)


def _cells(own: System, stage: Stage, here: Cell, part: Part) -> Iterator[Cell]:
    if not stage.axes and SCORES not in stage.tables:  # scores are one system's
        yield here
        return
    mine = [a for a in own.axes if a.name in stage.axes and not a.successive]
    for values in combinations(mine, part.settings):
        if not stage.when(part.settings, values):
            continue
        yield Cell.of({"protocol": part.settings.called, **here.to_json(), **values})


def _inputs(
    made: Mapping[tuple[str, Cell], Step],
    stage: Stage,
    cell: Cell,
    pipeline: Pipeline,
) -> Iterator[tuple[str, Step]]:
    """Yield (input, step); what the first of successive values lacks is left out."""
    for name in stage.inputs:
        source = name.partition("@")[0]
        there = [c for (stage_name, c) in made if stage_name == source]
        for called, wanted in _wanted(name, stage, cell, pipeline):
            found = wanted.narrowest(there)
            yield called, made[source, found or wanted]


def _wanted(
    name: str, stage: Stage, cell: Cell, pipeline: Pipeline
) -> Iterator[tuple[str, Cell]]:
    """Yield what an input is called, and of which cell it is: see `Stage`."""
    source, _, over = name.partition("@")
    if not over:
        yield name, cell
    elif over == PREVIOUS:
        before = _before(cell, stage, pipeline)
        if before is not None:
            yield name, before
    else:
        axes = {axis.name: axis for axis in system(pipeline.protocol).axes}
        for value in axes[over].values(pipeline):
            yield f"{source}@{value}", cell.with_(**{over: value})


def _before(cell: Cell, stage: Stage, pipeline: Pipeline) -> Cell | None:
    """Return the cell of the value before on the successive axis; None at the first."""
    axes = system(pipeline.protocol).axes
    (axis,) = (a for a in axes if a.successive and a.name in stage.axes)
    values = list(axis.values(pipeline))
    place = values.index(cell[axis.name])
    return cell.with_(**{axis.name: values[place - 1]}) if place else None


def _step(
    pipeline: Pipeline,
    stage: Stage,
    cell: Cell,
    inputs: Mapping[str, Step],
    raw: tuple[Raw, ...],
) -> Step:
    values = values_of(pipeline, cell)
    params = _read(stage, pipeline, values)
    index, sizes, places = _repeated(pipeline, stage, params, inputs)
    components: dict[str, Any] = {
        "stage": stage.name,
        "contract": VERSION,
        "params": params,
        "inputs": {name: step.key for name, step in inputs.items()},
        "code": _code(stage, values),
        "versions": fingerprint.versions(stage.libraries),
    }
    mine = raw if stage.raw else ()
    if mine:
        components["raw"] = {file.name: _counted(file) for file in mine}
    return Step(
        stage=stage,
        cell=cell,
        key=fingerprint.key(components),
        components=components,
        inputs={name: step.key for name, step in inputs.items()},
        index=index,
        sizes=sizes,
        places=places,
        raw=mine,
        private=pipeline.production,
        unpublished=unpublished(pipeline),
    )


def _read(
    stage: Stage, pipeline: Pipeline, values: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the values of the keys that a stage reads."""
    return {n: dotted(values, n) for n in (*stage.params, *stage.also(pipeline))}


def _repeated(
    pipeline: Pipeline,
    stage: Stage,
    params: Mapping[str, Any],
    inputs: Mapping[str, Step],
) -> tuple[tuple[str, ...], Place, tuple[Place, ...]]:
    """Return what a stage repeats over, how often, and where; () if rows are shared."""
    every = system(pipeline.protocol).index
    mine = [i for i in every if stage.index is None or i.name in stage.index]
    names = tuple(index.name for index in mine)
    sizes = tuple(index.size(pipeline) for index in every)
    varies = any(f"{name}s" in params for name in names) or stage.message
    if not varies and all(step.places == (SHARED,) for step in inputs.values()):
        return names, sizes, (SHARED,)
    return names, sizes, tuple(product(*map(range, sizes[: len(mine)])))


def _counted(file: Raw) -> str | dict[str, str]:
    """Return what counts of a file in a key: a keyed digest says that it is one."""
    return file.told if "sha256" in file.counted else file.counted


def _frozen(name: str, pipeline: Pipeline, step: Step, standing: Standing) -> Step:
    """Name a step by what was asked of whom; a release also by its number."""
    values = values_of(pipeline, step.cell, identity.asked(pipeline))
    asked = {name: dotted(values, name) for name in step.params}
    named: dict[str, Any] = {
        "stage": step.stage.name,
        "asked": {name: value for name, value in asked.items() if value is not None},
    }
    if not (step.stage.message and _alone(pipeline, step)):
        named["inputs"] = step.inputs
    if step.stage.raw:
        named["cohort"] = standing.cohort
    step = replace(step, frozen=True, key=fingerprint.key(named))
    if not step.stage.message:
        return step
    return _numbered(name, pipeline, step, named, standing)


def _public(pipeline: Pipeline, step: Step) -> bool:
    """Say whether a step reads a file that everybody may: it is made anew with it."""
    return bool(step.raw) and remote(pipeline.source)


def _alone(pipeline: Pipeline, step: Step) -> bool:
    """Say whether a release stays the same whatever its step reads.

    Of a ``whole`` one the step reads all that its sender is asked: another sender more
    is none for it. One that is ``tied`` comes from elsewhere, of a secret only: more
    or better public columns ask for no other.
    """
    kind = messages(pipeline.protocol)[step.stage.message]
    return kind.whole or (kind.tied and pipeline.intake is not None)


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
        "witnesses": standing.witnesses,
    }
    components = step.components | {"params": params, "release": about}
    key = fingerprint.key(named)
    return replace(step, key=key, release=release, components=components)


def values_of(
    pipeline: Pipeline, cell: Cell, given: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the configuration, or the ``given`` form of it, as this cell sees it."""
    own = system(pipeline.protocol)
    values = pipeline.model_dump(mode="json") if given is None else dict(given)
    values |= {axis.name: axis.read(pipeline, cell[axis.name]) for axis in own.axes}
    values |= {f"{index.name}s": index.size(pipeline) for index in own.index}
    return own.spelled(values)


def _code(stage: Stage, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what counts of the code of a stage, and what registries name.

    That is all that its functions reach, and `Here`, which they are given.
    """
    named = dict(_plugins(stage, values))
    roots = [f"{stage.module}:{name}" for name in FUNCTIONS]
    roots.append(f"{Here.__module__}:{Here.__name__}")
    # Two entries may be classes of one module: which of them counts, too.
    entries = {name: path for name, path in named.items() if ":" in path}
    return definitions.of_code([*roots, *named.values()]) | entries


def _plugins(stage: Stage, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what registries name for this cell, by entry; without a key all do.

    What an entry may call by name, as its registry says, counts with it.
    """
    for registry, key in stage.plugins:
        place, _, table = registry.partition(":")
        known: dict[str, str] = getattr(import_module(place), table)
        calls: dict[str, list[str]] = getattr(import_module(place), "MAY_CALL", {})
        entry, _, _ = str(dotted(values, key)).partition(":") if key else ("", "", "")
        for name in [entry, *calls.get(entry, ())] if key else known:
            yield f"{registry}.{name}", known[name]
