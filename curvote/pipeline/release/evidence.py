"""Evidence of releases outside the ledger, and checks that the ledger knows them.

A ledger that is gone, fresh, or older than it was gives clients a budget that they have
spent. Each release leaves traces elsewhere: the manifest of its artifact, a line of the
append-only copy, the record of its run, and a line of each witness outside the project.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curvote.base.errors import UserError
from curvote.chain.lookup import find_system
from curvote.chain.registry import SYSTEMS
from curvote.ledger.amounts import EVERYONE_SETTING, Entry
from curvote.ledger.book import Ledger, open_existing
from curvote.ledger.journal import JournalLine
from curvote.pipeline.config.project import Project
from curvote.pipeline.release import release_log
from curvote.pipeline.store import records
from curvote.pipeline.store.artifacts import read_manifest
from curvote.pipeline.store.locations import artifact_exists, server_store

RESTORE_HINT = (
    "Clients have spent what this ledger does not know, so nothing is released. Put the"
    " newest ledger back, or run `curvote ledger restore FILE` with any backup of it"
    " (an older one in place: that file): what it lacks is entered as spent"
)
FOREIGN_LEDGER_HINT = (
    "If these are the same people, `curvote ledger restore FILE` with that ledger's"
    " latest backup; if they are others, give this project another witness"
)
Manifests = list[tuple[Path, dict[str, Any] | None]]


@dataclass(frozen=True)
class Trace:
    """A trace of a release: its place, and the head of the ledger's chain then.

    ``published`` says that the release left; else it was reserved at least. ``line`` is
    what an append-only file says of it; a witness also names the ``ledger``.
    """

    where: str
    release: object
    head: str | None = None
    published: bool = True
    line: JournalLine | None = None
    ledger: str | None = None


def refuse_incomplete_ledger(
    project: Project, witnesses: Iterable[str] = (), populations: Container[str] = ()
) -> None:
    """Refuse a ledger file that does not know all releases (UserError)."""
    evidence = find_traces(project, witnesses)
    with open_existing(project.ledger) or nullcontext() as ledger:
        for witness in release_log.open_witnesses(project, witnesses):
            release_log.refuse_missing_witness(witness, ledger)
        refuse_unknown_releases(project, evidence, ledger, populations)


def refuse_unknown_releases(
    project: Project,
    evidence: Sequence[Trace],
    ledger: Ledger | None,
    populations: Container[str] = (),
) -> None:
    """Refuse an open ledger, or none, that lacks a release with a trace.

    A witness may tell of other ledgers, too: they matter for these ``populations``.
    """
    problems = list(missing_releases(evidence, ledger))
    missing_note = "" if ledger else f"{project.ledger} is gone. "
    if problems:
        raise UserError(f"{missing_note}{_first_problem(problems)}. {RESTORE_HINT}.")
    problems = list(foreign_releases(evidence, ledger, populations))
    if problems:
        raise UserError(
            f"{missing_note}{_first_problem(problems)}. {FOREIGN_LEDGER_HINT}. Nothing"
            " is released."
        )


def _first_problem(problems: Sequence[str]) -> str:
    return problems[0] + (
        f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    )


def foreign_releases(
    traces: Sequence[Trace], ledger: Ledger | None, populations: Container[str]
) -> Iterator[str]:
    """Yield a line for each release of these populations in another ledger."""
    origin = ledger.origin() if ledger else ""
    reported: set[object] = set()
    for trace in (t for t in traces if _is_foreign(t, origin)):
        population = (trace.line or {}).get("population")
        restored = ledger and ledger.knows(str(trace.head))
        if population in populations and not restored and trace.release not in reported:
            reported.add(trace.release)
            yield (
                f"{trace.where}: release {trace.release} of population {population!r}"
                " is in another ledger"
            )


def missing_releases(traces: Sequence[Trace], ledger: Ledger | None) -> Iterator[str]:
    """Yield a line for each release that a ledger should know and does not.

    The traces come first: what is released while we look is then no surprise. A release
    that several of them tell of is named once.
    """
    entries = {e.release: e for e in ledger.entries()} if ledger else {}
    origin = ledger.origin() if ledger else ""
    reported: set[object] = set()
    for trace in traces:
        problem = (
            None
            if _is_foreign(trace, origin)
            else _trace_problem(trace, ledger, entries)
        )
        if problem and trace.release not in reported:
            reported.add(trace.release)
            yield f"{trace.where}: {problem}"


def _is_foreign(trace: Trace, origin: str) -> bool:
    """Return whether a trace tells of another ledger than that of ``origin``."""
    return trace.ledger is not None and trace.ledger != origin


def artifact_manifests(project: Project) -> Manifests:
    """Return the artifact folders with their manifests, None if unreadable.

    Temporary folders never left; those set aside as altered may have.
    """
    roots = dict.fromkeys((project.artifacts, server_store(project)))
    folders = (folder for root in roots for folder in sorted(root.glob("*/*")))
    published = (
        f for f in folders if artifact_exists(f) and not f.name.startswith(".tmp-")
    )
    return [(folder, read_manifest(folder)) for folder in published]


def find_traces(project: Project, witnesses: Iterable[str] = ()) -> list[Trace]:
    """Return all traces: of manifests, the copy, run records and witnesses."""
    traces = [
        *_manifest_traces(project),
        *_copy_traces(project),
        *_record_traces(project),
    ]
    return [*traces, *_witness_traces(project, witnesses)]


def _manifest_traces(project: Project) -> Iterator[Trace]:
    for folder, manifest in artifact_manifests(project):
        if manifest and "release" in manifest:
            release = (
                manifest["release"] if isinstance(manifest["release"], dict) else {}
            )
            where = folder.relative_to(project.root)
            yield Trace(str(where), release.get("id"), release.get("head"))


def _copy_traces(project: Project) -> Iterator[Trace]:
    copy = release_log.copy_path(project).relative_to(project.root)
    for line in release_log.copy_lines(project):
        yield Trace(
            str(copy), line["release"], line["head"], published=False, line=line
        )


def _witness_traces(project: Project, paths: Iterable[str]) -> Iterator[Trace]:
    for witness in release_log.open_witnesses(project, paths):
        for line in witness.lines():
            where, about = str(witness.path), (line["release"], line["head"])
            ledger = str(line.get("ledger"))
            yield Trace(where, *about, published=False, line=line, ledger=ledger)


def _record_traces(project: Project) -> Iterator[Trace]:
    """Yield a trace for each release that a run's record mentions."""
    for protocol, stage, release, run in records.released_steps(project):
        if stage in _releasing_stages(protocol):
            yield Trace(f"the record of run {run}", release)


def _releasing_stages(protocol: str) -> set[str]:
    chain = find_system(protocol).production if protocol in SYSTEMS else ()
    return {stage.name for stage in chain if stage.message}


def _is_restored(trace: Trace, name: str, ledger: Ledger) -> bool:
    """Return whether a restored ledger accounts for a release."""
    everybody = ledger.setting(f"{EVERYONE_SETTING}{name}") is not None
    return everybody or (not trace.published and ledger.accepted_head(str(trace.head)))


def _trace_problem(
    trace: Trace, ledger: Ledger | None, entries: Mapping[str, Entry]
) -> str | None:
    """Return what a trace shows to be wrong with the ledger, or None."""
    name = trace.release
    if not isinstance(name, str):
        return "a release without an id"
    if name not in entries:
        restored = ledger and _is_restored(trace, name, ledger)
        return None if restored else f"release {name} is not in the ledger"
    if trace.head is not None and not (ledger and ledger.knows(trace.head)):
        return f"release {name}: the ledger is older than that, or another one"
    if trace.published and not entries[name].counts:
        return f"release {name} is there, but {entries[name].state} in the ledger"
    return None
