"""Audit tasks of a pipeline or run, and stored verdicts about them."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from curvote.base.classes import Classes
from curvote.base.errors import UserError
from curvote.chain.axis import Cell
from curvote.chain.lookup import find_system
from curvote.chain.registry import SYSTEMS
from curvote.chain.stage import Metadata, stage_functions
from curvote.curves.encoding import RESCALING_CONSTANTS, Encoding
from curvote.mechanisms.registry import MECHANISMS
from curvote.messages.message import learning_messages, message_of, messages_of
from curvote.pipeline.config.file import ConfiguredPipeline
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.schema import Pipeline
from curvote.pipeline.config.settings import dotted_value, labelled_parts, resolve_parts
from curvote.pipeline.config.source import MissingFiles, raw_files
from curvote.pipeline.plan import definitions
from curvote.pipeline.plan.expand import cell_values, stages_of
from curvote.pipeline.plan.step import json_digest
from curvote.pipeline.run.results import stage_metadata
from curvote.pipeline.store.artifacts import write_json
from curvote.pipeline.store.records import RunRecord
from curvote.wire.task import AnyTask, Task

MetadataReader = Callable[[str], Metadata]


@dataclass(frozen=True)
class MessageLoss:
    """The exact privacy loss of one message, and the claimed one.

    ``plugin`` names the package whose mechanism noises it, "" for curvote.
    """

    message: str
    claimed: float
    exact: float
    plugin: str = ""

    @property
    def is_within_claim(self) -> bool:
        """Whether the loss is within the claim; delta is counted in ``exact``."""
        return self.exact <= self.claimed


def pipeline_tasks(project: Project, configured: ConfiguredPipeline) -> list[AnyTask]:
    """Return the distinct tasks of all settings, systems and messages.

    Constants that volunteers will decide, and candidates that training will make, are
    stand-ins: an audit chooses its own z and its own labels. UserError: its raw file
    is not here.
    """
    return _distinct_tasks(
        task
        for setting in configured.settings
        for part in resolve_parts(setting.pipeline)
        for task in nominal_tasks(
            part.settings, _metadata_from_settings(project, part.settings)
        )
    )


def run_tasks(project: Project, record: RunRecord) -> list[AnyTask]:
    """Return the tasks of a run, from the metadata that it stored."""
    tasks: list[AnyTask] = []
    for setting, part in labelled_parts(record.config):
        cell = Cell.from_mapping({"setting": setting, **dict(part.pairs)})
        read = partial(stage_metadata, project, record, cell=cell)
        tasks += nominal_tasks(part.settings, read)
    return _distinct_tasks(tasks)


def nominal_tasks(part: Pipeline, read: MetadataReader) -> Iterable[AnyTask]:
    """Return the tasks of one part of a pipeline, with nominal constants.

    ``read`` returns the facts of a stage before the first message.
    """
    return (find_system(part.protocol).audit_tasks or _tasks_by_epsilon)(part, read)


def _tasks_by_epsilon(pipeline: Pipeline, read: MetadataReader) -> Iterator[AnyTask]:
    """Yield a task for each epsilon and message, about what clients project."""
    config = pipeline.model_dump(mode="json")
    select = messages_of if pipeline.judges else learning_messages
    kinds = select(pipeline.protocol)
    if not kinds:
        return
    metadata = read("project")
    encoding, classes = Encoding.from_json(metadata["encoding"]), metadata["classes"]
    names = RESCALING_CONSTANTS[encoding.rescale]
    constants = {n: encoding.constants.get(n, np.ones(encoding.d)) for n in names}
    encoding = replace(encoding, constants=constants)
    candidate_encoding = replace(encoding, feature_map=pipeline.project.judge)
    first = next(iter(kinds.values()))
    for epsilon in pipeline.epsilon:
        terms = first.terms(partial(dotted_value, config), candidate_encoding)
        for asks, kind in kinds.items():
            task = Task(
                encoding=candidate_encoding,
                classes=Classes(classes),
                epsilon=epsilon,
                protocol=pipeline.protocol,
                asks=asks,
                **terms,
            )
            yield kind.nominal_task(task)


def _distinct_tasks(every: Iterable[AnyTask]) -> list[AnyTask]:
    return list({task.digest(): task for task in every}.values())


def _metadata_from_settings(project: Project, pipeline: Pipeline) -> MetadataReader:
    """Return a reader that computes a stage's metadata from public inputs."""
    raw = raw_files(project, pipeline, fetch=False)
    if isinstance(raw, MissingFiles):
        names = ", ".join(raw.names)
        raise UserError(f"a raw file is not here: `curvote data fetch {names}` first.")
    stages = {stage.name: stage for stage in stages_of(pipeline)}
    values = cell_values(pipeline, Cell())
    values["raw.paths"] = {file.name: file.path for file in raw}

    def read(name: str) -> Metadata:
        stage = stages[name]
        keys = (*stage.params, *stage.also(pipeline))
        params = values | {key: dotted_value(values, key) for key in keys}
        # An audit reads no client: there is nothing else.
        inputs = {name: SimpleNamespace(metadata=read(name)) for name in stage.inputs}
        metadata: Metadata = stage_functions(stage.module).metadata(inputs, params)
        return metadata

    return read


def save_verdicts(
    project: Project,
    pipeline: str,
    verdicts: Iterable[tuple[AnyTask, Mapping[str, Any]]],
) -> None:
    """Store the verdicts of `curvote audit --pipeline` for the report."""
    path = _verdicts_path(project, pipeline)
    path.parent.mkdir(parents=True, exist_ok=True)
    when = datetime.now(UTC).isoformat(timespec="seconds")
    rows = {_verdict_name(task): row for task, row in verdicts}
    write_json(path, {"audited": when, "rows": rows})


def stored_verdicts(project: Project, record: RunRecord) -> dict[str, Any] | None:
    """Return time and rows of the latest audit of a run's tasks, or None.

    None if one of them was never audited, or only while its code was another.
    """
    path = _verdicts_path(project, record.pipeline)
    if not path.is_file():
        return None
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(document["rows"], dict):  # once a list that did not say of what
        return None
    names = [_verdict_name(task) for task in run_tasks(project, record)]
    if not set(names) <= set(document["rows"]):
        return None
    return document | {"rows": [document["rows"][name] for name in names]}


def _verdict_name(task: AnyTask) -> str:
    """Return a digest of a task and of the code that draws its message."""
    chosen = message_of(task).code_modules(task)
    roots = (f"{type(task).__module__}:{type(task).__name__}", "curvote.base.entropy")
    every = (f"{SYSTEMS[task.protocol]}.messages", "curvote.messages.message")
    code = definitions.of_code([*every, *roots, *chosen])
    for place in chosen:
        code |= definitions.of_plugin(place)
    return json_digest([task.digest(), code])


def _verdicts_path(project: Project, pipeline: str) -> Path:
    return project.state / "audits" / f"{pipeline}.json"


def exact_losses(project: Project, record: RunRecord) -> list[MessageLoss]:
    """Return the worst exact loss of each message of a run.

    The settings of a run may ask for the same message in several ways: the worst.
    """
    all_tasks = run_tasks(project, record)
    several = len({task.protocol for task in all_tasks}) > 1
    worst: dict[tuple[str, float, str], float] = {}
    for task in all_tasks:
        name = f"{task.protocol}.{task.asks}" if several else task.asks
        loss = message_of(task).max_privacy_loss(task)
        key = name, float(task.epsilon), MECHANISMS.origin(task.mechanism)
        worst[key] = max(loss, worst.get(key, loss))
    return [
        MessageLoss(message, claimed, exact, plugin)
        for (message, claimed, plugin), exact in worst.items()
    ]
