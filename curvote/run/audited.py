"""What an audit says about a pipeline: the tasks its clients obey, and the verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from curvote.datasets.registry import DATASETS
from curvote.errors import InternalError, UserError
from curvote.protocols.message import message_of, messages
from curvote.representation.encoding import Encoding
from curvote.representation.rescale import RESCALES
from curvote.run import fingerprint
from curvote.run.choosing import concrete
from curvote.run.config import PipelinesFile
from curvote.run.project import Project
from curvote.run.schema import Pipeline
from curvote.run.settings import dotted
from curvote.run.source import Absent, raw_files
from curvote.run.stages import project as projecting
from curvote.run.store import write_json
from curvote.task import Task


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


def tasks(project: Project, pipeline: str) -> list[Task]:
    """Return the task of every protocol, epsilon and message of a pipeline.

    Constants that volunteers will decide, and candidates that training will make, are
    stand-ins: an audit chooses its own z and its own labels. UserError: no such
    pipeline, or its raw file is not here.
    """
    configured = PipelinesFile(project).configured(pipeline)
    encoding, public = _encoding(project, configured.settings[0].pipeline)
    return rehearsals(encoding, public, configured.values())


def rehearsals(
    encoding: Encoding, public: Mapping[str, Any], config: Mapping[str, Any]
) -> list[Task]:
    """Return each task that a run's configuration leads to once.

    ``encoding`` is that of its first setting, ``public`` the facts of its source.
    """
    found = {
        task.digest(): task
        for pipeline in concrete(config)
        for epsilon in pipeline.epsilon
        for task in _rehearsed(encoding, public, pipeline, epsilon)
    }
    return list(found.values())


def _rehearsed(
    encoding: Encoding, public: Mapping[str, Any], pipeline: Pipeline, epsilon: float
) -> Iterator[Task]:
    kinds = messages(pipeline.protocol)
    config = pipeline.model_dump(mode="json")
    negative, positive = public["classes"]
    for asks, kind in kinds.items():
        stated = Task(
            encoding=replace(encoding, feature_map=pipeline.project.judge),
            classes=(negative, positive),
            epsilon=epsilon,
            protocol=pipeline.protocol,
            asks=asks,
            **next(iter(kinds.values())).terms(lambda key: dotted(config, key)),
        )
        yield kind.rehearsal(stated)


def _encoding(project: Project, pipeline: Pipeline) -> tuple[Encoding, Any]:
    raw = raw_files(project, pipeline, fetch=False)
    if isinstance(raw, Absent):
        names = ", ".join(raw.names)
        raise UserError(f"a raw file is not here: `curvote data fetch {names}` first.")
    dataset = import_module(DATASETS[pipeline.source["name"]])
    parameters = dataset.Parameters.model_validate(pipeline.source)
    public = dataset.facts(parameters, {file.name: Path(file.path) for file in raw})
    params = {f"project.{k}": v for k, v in pipeline.project.model_dump().items()}
    facts = projecting.facts({"ingest": _Facts(public)}, params)
    encoding = Encoding.from_json(facts["encoding"])
    judge = pipeline.project.judge
    full = replace(encoding, constants=_filled(encoding), feature_map=judge)
    return full, public


def _filled(encoding: Encoding) -> dict[str, Any]:
    """Return all constants; 1 stands in for those that volunteers will decide."""
    names = RESCALES[encoding.rescale]
    return {n: encoding.constants.get(n, np.ones(encoding.d)) for n in names}


class _Facts:
    """An ingest artifact that holds nothing but its facts."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts = facts

    def columns(self, table: str, replicate: int) -> dict[str, Any]:
        """Refuse: an audit reads no client."""
        raise InternalError(f"an audit reads no client: {table}, {replicate}")

    def pieces(self, table: str) -> Iterator[dict[str, Any]]:
        """Refuse: an audit reads no client."""
        raise InternalError(f"an audit reads no client: {table}")


def save(project: Project, pipeline: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Keep the rows of `curvote audit --pipeline`, for the report."""
    path = _place(project, pipeline)
    path.parent.mkdir(parents=True, exist_ok=True)
    when = datetime.now(UTC).isoformat(timespec="seconds")
    about = _about(PipelinesFile(project).configured(pipeline).values())
    write_json(path, {"audited": when, "about": about, "rows": list(rows)})


def saved(
    project: Project, pipeline: str, config: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return what the latest audit found, if it was one of what ``config`` sends."""
    path = _place(project, pipeline)
    if not path.is_file():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found if found["about"] == _about(config) else None


def _about(config: Mapping[str, Any]) -> str:
    """Return the digest of what decides which messages clients send."""
    decides = ("protocol", "protocols", "epsilon", "privatize", "direct", "project")
    return fingerprint.of_json({name: config.get(name) for name in decides})


def _place(project: Project, pipeline: str) -> Path:
    return project.state / "audits" / f"{pipeline}.json"


def exact_losses(
    encoding: Encoding, public: Mapping[str, Any], config: Mapping[str, Any]
) -> list[Loss]:
    """Return the worst loss of each complete message, from the samplers' integers."""
    every = rehearsals(encoding, public, config)
    several = len({task.protocol for task in every}) > 1
    return [
        Loss(
            f"{task.protocol}.{task.asks}" if several else task.asks,
            task.epsilon,
            message_of(task).worst_loss(task),
        )
        for task in every
    ]
