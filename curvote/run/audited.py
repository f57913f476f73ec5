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
from curvote.run.config import Configured, PipelinesFile
from curvote.run.project import Project
from curvote.run.schema import Pipeline
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
    """Return the task of every epsilon and message of a pipeline.

    Constants that volunteers will decide, and candidates that training will make, are
    stand-ins: an audit chooses its own z and its own labels. UserError: no such
    pipeline, or its raw file is not here.
    """
    configured = PipelinesFile(project).configured(pipeline)
    task = _stated(project, configured)
    return rehearsals(task, configured.pipeline.epsilon)


def rehearsals(task: Task, epsilons: Iterable[float]) -> list[Task]:
    """Return a task for each epsilon and message of the given task's protocol."""
    kinds = messages(task.protocol).values()
    each = [replace(task, epsilon=epsilon) for epsilon in epsilons]
    return [kind.rehearsal(one) for one in each for kind in kinds]


def _stated(project: Project, configured: Configured) -> Task:
    encoding, public = _encoding(project, configured.pipeline)
    return stated(encoding, public, configured.values())


def stated(
    encoding: Encoding, public: Mapping[str, Any], config: Mapping[str, Any]
) -> Task:
    """Return the task of a resolved configuration at its first epsilon."""
    privatize = config["privatize"]
    negative, positive = public["classes"]
    return Task(
        encoding=encoding,
        classes=(negative, positive),
        epsilon=config["epsilon"][0],
        mechanism=privatize["mechanism"],
        label_share=privatize["label_share"],
        params=privatize.get("params", {}),
        protocol=config["protocol"],
    )


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
    decides = ("protocol", "epsilon", "privatize", "project")
    return fingerprint.of_json({name: config[name] for name in decides})


def _place(project: Project, pipeline: str) -> Path:
    return project.state / "audits" / f"{pipeline}.json"


def exact_losses(task: Task, epsilons: Iterable[float]) -> list[Loss]:
    """Return the worst loss of each complete message, from the samplers' integers."""
    return [
        Loss(one.asks, one.epsilon, message_of(one).worst_loss(one))
        for one in rehearsals(task, epsilons)
    ]
