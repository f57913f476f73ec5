"""Every check of `curvote doctor`, in the order in which they are told."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from curvote.errors import UserError
from curvote.flows.examining import (
    databases,
    machine,
    mending,
    released,
    stored,
    versions,
)
from curvote.flows.examining.finding import Check, Finding
from curvote.run.config.file import PipelinesFile
from curvote.run.project import Project


def pipelines(project: Project) -> Iterator[Finding]:
    """Read the configuration of every pipeline."""
    file = PipelinesFile(project)
    for name in file.names():
        file.configured(name)
    yield Finding("pipelines", "ok", f"{len(file.names())} can be read")


CHECKS: dict[str, Check] = {
    "versions": versions.versions,
    "pipelines": pipelines,
    "space": machine.space,
    "file system": machine.file_systems,
    "clock": machine.clock,
    "stale runs": stored.runs,
    "run records": stored.records,
    "locks": stored.locks,
    "object store": stored.object_store,
    "artifacts": stored.artifacts,
    "ledger": released.ledger,
    "reservations": released.reservations,
    "witness": released.witness,
    "intake": released.intake,
    "databases": databases.databases,
    "MLflow runs": mending.tracked,
}


def examined(project: Project) -> list[Finding]:
    """Do every check; one that cannot be done is a finding itself."""
    return [each for name in CHECKS for each in _done(name, project)]


def _done(name: str, project: Project) -> list[Finding]:
    try:
        return list(CHECKS[name](project))
    except UserError as error:
        return [Finding(name, "failed", str(error), "as it says")]
    except (OSError, sqlite3.Error, ValueError, KeyError, TypeError) as error:
        words = f"could not be looked at: {type(error).__name__}: {error}"
        return [Finding(name, "failed", words, "put what it names back from a backup")]
