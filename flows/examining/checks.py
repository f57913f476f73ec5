"""Checks of `curvote doctor`, in the order in which they are reported."""

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


def check_pipelines(project: Project) -> Iterator[Finding]:
    """Check that the configuration of every pipeline can be read."""
    file = PipelinesFile(project)
    for name in file.names():
        file.configure_pipeline(name)
    yield Finding("pipelines", "ok", f"{len(file.names())} can be read")


CHECKS: dict[str, Check] = {
    "versions": versions.check_versions,
    "pipelines": check_pipelines,
    "space": machine.check_space,
    "file system": machine.check_file_systems,
    "clock": machine.check_clock,
    "stale runs": stored.check_runs,
    "run records": stored.check_records,
    "locks": stored.check_locks,
    "object store": stored.check_object_store,
    "artifacts": stored.check_artifacts,
    "ledger": released.check_ledger,
    "reservations": released.check_reservations,
    "witness": released.check_witnesses,
    "intake": released.check_intake,
    "databases": databases.check_databases,
    "MLflow runs": mending.check_tracking,
}


def run_checks(project: Project) -> list[Finding]:
    """Return the findings of all checks; a failing check is a finding."""
    return [finding for name in CHECKS for finding in _run_check(name, project)]


def _run_check(name: str, project: Project) -> list[Finding]:
    try:
        return list(CHECKS[name](project))
    except UserError as error:
        return [Finding(name, "failed", str(error), "as it says")]
    except (OSError, sqlite3.Error, ValueError, KeyError, TypeError) as error:
        words = f"could not be looked at: {type(error).__name__}: {error}"
        return [Finding(name, "failed", words, "put what it names back from a backup")]
