"""The ledger against the store: nothing left unrecorded, nothing recorded is gone."""

from __future__ import annotations

from collections.abc import Iterator

from curvote.client.ledger import Entry, existing
from curvote.run.places import below
from curvote.run.plan.fingerprint import of_file
from curvote.run.project import Project
from curvote.run.release import evidence
from curvote.run.release.releases_log import Accounts
from curvote.run.store.artifacts import MANIFEST


def problems(project: Project) -> list[str]:
    """Return what is wrong with the project's ledger and store, a line each.

    Beyond `Ledger.problems`: the ledger knows all that manifests, the append-only copy
    and run records tell of (`evidence.unknown`: a run refuses to release otherwise),
    what a confirmed release published is where it was put, with the manifest that was
    confirmed (SHA-256), and every manifest can be read.
    """
    # The store first: a release that is recorded while we look comes too late for it.
    accounts = Accounts(project)
    torn, told = list(_torn(project)), evidence.traces(project, accounts.witnesses)
    people = accounts.populations
    ledger = existing(project.ledger)
    if ledger is None:
        others = evidence.elsewhere(told, None, people)
        return [*torn, *evidence.unknown(told, None), *others]
    with ledger:
        entries = ledger.entries()
        found = [*ledger.problems(), *evidence.unknown(told, ledger)]
        found += evidence.elsewhere(told, ledger, people)
    found += (line for entry in entries for line in _moved(project, entry))
    return [*found, *torn]


def _torn(project: Project) -> Iterator[str]:
    for folder, manifest in evidence.manifests(project):
        if manifest is None:
            where = folder.relative_to(project.root)
            yield f"{where}: no readable manifest, so nobody knows what it released"


def _moved(project: Project, entry: Entry) -> Iterator[str]:
    if entry.place is None:  # not confirmed
        return
    manifest = below(project, entry.place) / MANIFEST
    if not manifest.is_file():
        yield f"release {entry.release}: {entry.place} is missing"
    elif of_file(manifest) != entry.digest:
        yield f"release {entry.release}: {entry.place} is not what was confirmed"
