"""What an audit says about a pipeline: the tasks its clients obey, and the verdicts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from curvote.chain.axis import Cell
from curvote.chain.lookup import system
from curvote.chain.registry import SYSTEMS
from curvote.chain.stage import Facts, Place
from curvote.chain.system import Part
from curvote.classes import Classes
from curvote.errors import InternalError, UserError
from curvote.protocols.message import message_of, messages
from curvote.representation.encoding import Encoding
from curvote.representation.rescale import RESCALES
from curvote.run.config.file import Configured
from curvote.run.config.parts import parts, parts_of
from curvote.run.config.schema import Pipeline
from curvote.run.config.settings import dotted
from curvote.run.config.source import Absent, raw_files
from curvote.run.history import RunRecord
from curvote.run.plan import definitions, fingerprint
from curvote.run.plan.expand import values_of
from curvote.run.plan.stages import stages_of
from curvote.run.project import Project
from curvote.run.results import facts_of
from curvote.run.store.artifacts import write_json
from curvote.task import Asked, Task

Read = Callable[[str], Facts]


@dataclass(frozen=True)
class Loss:
    """The exact privacy loss of one message, beside what is claimed."""

    message: str
    claimed: float
    exact: float

    @property
    def holds(self) -> bool:
        """Whether the loss is within the claim; delta is counted in ``exact``."""
        return self.exact <= self.claimed


def tasks(project: Project, configured: Configured) -> list[Asked]:
    """Return the task of every setting, system, level and message of a pipeline.

    Constants that volunteers will decide, and candidates that training will make, are
    stand-ins: an audit chooses its own z and its own labels. UserError: its raw file
    is not here.
    """
    return _once(
        task
        for setting in configured.settings
        for part in parts(setting.pipeline)
        for task in rehearsals(part.settings, _computed(project, part.settings))
    )


def tasks_of(project: Project, record: RunRecord) -> list[Asked]:
    """Return the tasks that `tasks` gives for the configuration of a run."""
    return _once(
        task
        for setting, part in parts_of(record.config)
        for task in rehearsals(part.settings, _stored(project, record, setting, part))
    )


def rehearsals(part: Pipeline, read: Read) -> Iterable[Asked]:
    """Return each task that one part of a pipeline leads to.

    ``read`` returns the facts of a stage before the first message.
    """
    return (system(part.protocol).asked or _asked)(part, read)


def _asked(pipeline: Pipeline, read: Read) -> Iterator[Asked]:
    """Yield a task for each epsilon and message, about what clients project."""
    encoding, classes = _read(read("project"))
    judged = replace(encoding, feature_map=pipeline.project.judge)
    for epsilon in pipeline.epsilon if messages(pipeline.protocol) else ():
        yield from _rehearsed(judged, classes, pipeline, epsilon)


def _rehearsed(
    encoding: Encoding, classes: Classes, pipeline: Pipeline, epsilon: float
) -> Iterator[Asked]:
    kinds = messages(pipeline.protocol)
    config = pipeline.model_dump(mode="json")
    for asks, kind in kinds.items():
        first = next(iter(kinds.values()))
        stated = Task(
            encoding=encoding,
            classes=classes,
            epsilon=epsilon,
            protocol=pipeline.protocol,
            asks=asks,
            **first.terms(lambda key: dotted(config, key), encoding),
        )
        yield kind.rehearsal(stated)


def _once(every: Iterable[Asked]) -> list[Asked]:
    return list({task.digest(): task for task in every}.values())


def _computed(project: Project, pipeline: Pipeline) -> Read:
    """Return what gives a stage's facts from public files and settings alone."""
    raw = raw_files(project, pipeline, fetch=False)
    if isinstance(raw, Absent):
        names = ", ".join(raw.names)
        raise UserError(f"a raw file is not here: `curvote data fetch {names}` first.")
    stages = {stage.name: stage for stage in stages_of(pipeline)}
    values = values_of(pipeline, Cell())
    values["raw.paths"] = {file.name: file.path for file in raw}

    def read(name: str) -> Facts:
        stage = stages[name]
        keys = (*stage.params, *stage.also(pipeline))
        params = values | {key: dotted(values, key) for key in keys}
        inputs = {source: _Facts(read(source)) for source in stage.inputs}
        facts: Facts = import_module(stage.module).facts(inputs, params)
        return facts

    return read


def _stored(
    project: Project, record: RunRecord, setting: str | None, part: Part
) -> Read:
    """Return what gives a stage's facts as a run stored them."""
    cell = Cell.of({"setting": setting, **dict(part.pairs)})
    return lambda stage: facts_of(project, record, stage, cell)


def _read(facts: Facts) -> tuple[Encoding, Classes]:
    encoding = Encoding.from_json(facts["encoding"])
    return replace(encoding, constants=_filled(encoding)), Classes(facts["classes"])


def _filled(encoding: Encoding) -> dict[str, Any]:
    """Return all constants; 1 stands in for those that volunteers will decide."""
    names = RESCALES[encoding.rescale]
    return {n: encoding.constants.get(n, np.ones(encoding.d)) for n in names}


class _Facts:
    """An artifact that holds nothing but its facts."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts = facts

    def columns(
        self, table: str, place: Place, only: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Refuse: an audit reads no client."""
        raise InternalError(f"an audit reads no client: {table}, {place}")

    def pieces(self, table: str) -> Iterator[dict[str, Any]]:
        """Refuse: an audit reads no client."""
        raise InternalError(f"an audit reads no client: {table}")


def save(
    project: Project, pipeline: str, verdicts: Iterable[tuple[Asked, Mapping[str, Any]]]
) -> None:
    """Keep what `curvote audit --pipeline` found about each task, for the report."""
    path = _place(project, pipeline)
    path.parent.mkdir(parents=True, exist_ok=True)
    when = datetime.now(UTC).isoformat(timespec="seconds")
    rows = {_name(task): row for task, row in verdicts}
    write_json(path, {"audited": when, "rows": rows})


def saved(project: Project, record: RunRecord) -> dict[str, Any] | None:
    """Return what the latest audit found about the tasks of a run: when, and its rows.

    None if one of them was never audited, or only while its code was another.
    """
    path = _place(project, record.pipeline)
    if not path.is_file():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(found["rows"], dict):  # once a list that did not say of what
        return None
    wanted = [_name(task) for task in tasks_of(project, record)]
    if not set(wanted) <= set(found["rows"]):
        return None
    return found | {"rows": [found["rows"][name] for name in wanted]}


def _name(task: Asked) -> str:
    """Return the digest of a task and of all code that its message is drawn by."""
    chosen = message_of(task).code(task)
    given = (f"{type(task).__module__}:{type(task).__name__}", "curvote.entropy")
    every = (f"{SYSTEMS[task.protocol]}.messages", "curvote.protocols.message")
    code = definitions.of_code([*every, *given, *chosen])
    return fingerprint.of_json([task.digest(), code])


def _place(project: Project, pipeline: str) -> Path:
    return project.state / "audits" / f"{pipeline}.json"


def exact_losses(project: Project, record: RunRecord) -> list[Loss]:
    """Return the worst loss of each complete message, from the samplers' integers.

    The settings of a run may ask for the same message in several ways: the worst.
    """
    every = tasks_of(project, record)
    several = len({task.protocol for task in every}) > 1
    worst: dict[tuple[str, float], float] = {}
    for task in every:
        name = f"{task.protocol}.{task.asks}" if several else task.asks
        loss = message_of(task).worst_loss(task)
        key = name, float(task.epsilon)
        worst[key] = max(loss, worst.get(key, loss))
    return [Loss(name, claimed, exact) for (name, claimed), exact in worst.items()]
