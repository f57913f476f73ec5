"""Ledger reports: consistency with the store, and export as a table."""

from __future__ import annotations

from collections.abc import Iterator

from curvote.client.ledger import Entry, open_existing
from curvote.run.places import resolve_location
from curvote.run.plan.fingerprint import file_digest
from curvote.run.project import Project
from curvote.run.release import evidence
from curvote.run.release.releases_log import ProjectAccounts
from curvote.run.store.artifacts import MANIFEST


def ledger_problems(project: Project) -> list[str]:
    """Return the problems of the project's ledger and store, a line each.

    Beyond `Ledger.problems`: the ledger knows all that manifests, the append-only copy
    and run records tell of (`evidence.missing_releases`: a run refuses to release
    otherwise), what a confirmed release published is where it was put, with the
    manifest that was confirmed (SHA-256), and every manifest can be read.
    """
    # The store first: a release that is recorded while we look comes too late for it.
    accounts = ProjectAccounts(project)
    torn, found_traces = (
        list(_torn_manifests(project)),
        evidence.find_traces(project, accounts.witnesses),
    )
    populations = accounts.populations
    ledger = open_existing(project.ledger)
    if ledger is None:
        foreign = evidence.foreign_releases(found_traces, None, populations)
        return [*torn, *evidence.missing_releases(found_traces, None), *foreign]
    with ledger:
        entries = ledger.entries()
        problems = [
            *ledger.problems(),
            *evidence.missing_releases(found_traces, ledger),
        ]
        problems += evidence.foreign_releases(found_traces, ledger, populations)
    problems += (
        line for entry in entries for line in _misplaced_artifacts(project, entry)
    )
    return [*problems, *torn]


def _torn_manifests(project: Project) -> Iterator[str]:
    for folder, manifest in evidence.artifact_manifests(project):
        if manifest is None:
            where = folder.relative_to(project.root)
            yield f"{where}: no readable manifest, so nobody knows what it released"


def _misplaced_artifacts(project: Project, entry: Entry) -> Iterator[str]:
    if entry.place is None:  # not confirmed
        return
    manifest = resolve_location(project, entry.place) / MANIFEST
    if not manifest.is_file():
        yield f"release {entry.release}: {entry.place} is missing"
    elif file_digest(manifest) != entry.digest:
        yield f"release {entry.release}: {entry.place} is not what was confirmed"
