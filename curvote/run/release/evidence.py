"""What tells of releases beside the ledger, and whether the ledger knows them.

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

from curvote.chain.lookup import system
from curvote.chain.registry import SYSTEMS
from curvote.client.ledger import Entry, Ledger, existing
from curvote.client.ledger_entries import EVERYONE
from curvote.client.ledger_witness import Line
from curvote.errors import UserError
from curvote.run import records
from curvote.run.places import served, there
from curvote.run.project import Project
from curvote.run.release import releases_log
from curvote.run.store.artifacts import manifest_of

WAY_OUT = (
    "Clients have spent what this ledger does not know, so nothing is released. Put the"
    " newest ledger back, or run `curvote ledger restore FILE` with any backup of it"
    " (an older one in place: that file): what it lacks is entered as spent"
)
FOREIGN = (
    "If these are the same people, `curvote ledger restore FILE` with that ledger's"
    " latest backup; if they are others, give this project another witness"
)
Manifests = list[tuple[Path, dict[str, Any] | None]]


@dataclass(frozen=True)
class Trace:
    """What tells of a release: where, and the head of the chain at the time.

    ``left`` says that the release left; else it was reserved at least. ``line`` is what
    an append-only file says of it; a witness also names the ``ledger``.
    """

    where: str
    release: object
    head: str | None = None
    left: bool = True
    line: Line | None = None
    ledger: str | None = None


def refuse_other_ledger(
    project: Project, witnesses: Iterable[str] = (), populations: Container[str] = ()
) -> None:
    """Refuse to go on with a ledger that does not know all releases: UserError."""
    told = traces(project, witnesses)
    with existing(project.ledger) or nullcontext() as ledger:
        for witness in releases_log.witnesses(project, witnesses):
            releases_log.refuse_gone(witness, ledger)
        refuse_other(project, told, ledger, populations)


def refuse_other(
    project: Project,
    told: Sequence[Trace],
    ledger: Ledger | None,
    populations: Container[str] = (),
) -> None:
    """Refuse an opened ledger, or none, that does not know all that is told of.

    A witness may tell of other ledgers, too: they matter for these ``populations``.
    """
    found = list(unknown(told, ledger))
    gone = "" if ledger else f"{project.ledger} is gone. "
    if found:
        raise UserError(f"{gone}{_first(found)}. {WAY_OUT}.")
    found = list(elsewhere(told, ledger, populations))
    if found:
        raise UserError(f"{gone}{_first(found)}. {FOREIGN}. Nothing is released.")


def _first(found: Sequence[str]) -> str:
    return found[0] + (f" (and {len(found) - 1} more)" if len(found) > 1 else "")


def elsewhere(
    traces: Sequence[Trace], ledger: Ledger | None, populations: Container[str]
) -> Iterator[str]:
    """Yield what a witness says of these populations and other ledgers, a line each."""
    origin = ledger.origin() if ledger else ""
    told: set[object] = set()
    for trace in (t for t in traces if _elsewhere(t, origin)):
        population = (trace.line or {}).get("population")
        restored = ledger and ledger.knows(str(trace.head))
        if population in populations and not restored and trace.release not in told:
            told.add(trace.release)
            yield (
                f"{trace.where}: release {trace.release} of population {population!r}"
                " is in another ledger"
            )


def unknown(traces: Sequence[Trace], ledger: Ledger | None) -> Iterator[str]:
    """Yield what a ledger (None: there is none) should know and does not, a line each.

    The traces come first: what is released while we look is then no surprise. A release
    that several of them tell of is named once.
    """
    entries = {e.release: e for e in ledger.entries()} if ledger else {}
    origin = ledger.origin() if ledger else ""
    told: set[object] = set()
    for trace in traces:
        problem = (
            None if _elsewhere(trace, origin) else _problem(trace, ledger, entries)
        )
        if problem and trace.release not in told:
            told.add(trace.release)
            yield f"{trace.where}: {problem}"


def _elsewhere(trace: Trace, origin: str) -> bool:
    """Say whether a witness tells of another ledger than that of this first link."""
    return trace.ledger is not None and trace.ledger != origin


def manifests(project: Project) -> Manifests:
    """Return the artifacts with their manifests, None where one cannot be read.

    Temporary folders never left; those set aside as altered may have.
    """
    roots = dict.fromkeys((project.artifacts, served(project)))
    folders = (folder for root in roots for folder in sorted(root.glob("*/*")))
    left = (f for f in folders if there(f) and not f.name.startswith(".tmp-"))
    return [(folder, manifest_of(folder)) for folder in left]


def traces(project: Project, witnesses: Iterable[str] = ()) -> list[Trace]:
    """Return all that tells of a release: manifests, copy, run records, witnesses."""
    told = [*_published(project), *_copied(project), *_recorded(project)]
    return [*told, *_witnessed(project, witnesses)]


def _published(project: Project) -> Iterator[Trace]:
    for folder, manifest in manifests(project):
        if manifest and "release" in manifest:
            said = manifest["release"] if isinstance(manifest["release"], dict) else {}
            where = folder.relative_to(project.root)
            yield Trace(str(where), said.get("id"), said.get("head"))


def _copied(project: Project) -> Iterator[Trace]:
    copy = releases_log.path_of(project).relative_to(project.root)
    for line in releases_log.lines(project):
        yield Trace(str(copy), line["release"], line["head"], left=False, line=line)


def _witnessed(project: Project, named: Iterable[str]) -> Iterator[Trace]:
    for witness in releases_log.witnesses(project, named):
        for line in witness.lines():
            where, about = str(witness.path), (line["release"], line["head"])
            ledger = str(line.get("ledger"))
            yield Trace(where, *about, left=False, line=line, ledger=ledger)


def _recorded(project: Project) -> Iterator[Trace]:
    """Yield the releases of clients that runs made, or found made."""
    for protocol, stage, release, run in records.released(project):
        if stage in _releasing(protocol):
            yield Trace(f"the record of run {run}", release)


def _releasing(protocol: str) -> set[str]:
    chain = system(protocol).production if protocol in SYSTEMS else ()
    return {stage.name for stage in chain if stage.message}


def _restored(trace: Trace, name: str, ledger: Ledger) -> bool:
    """Say whether a restored ledger knows: everybody is charged, or it never left."""
    everybody = ledger.setting(f"{EVERYONE}{name}") is not None
    return everybody or (not trace.left and ledger.told_of(str(trace.head)))


def _problem(
    trace: Trace, ledger: Ledger | None, entries: Mapping[str, Entry]
) -> str | None:
    """Return what is wrong with the ledger by one trace, or None."""
    name = trace.release
    if not isinstance(name, str):
        return "a release without an id"
    if name not in entries:
        restored = ledger and _restored(trace, name, ledger)
        return None if restored else f"release {name} is not in the ledger"
    if trace.head is not None and not (ledger and ledger.knows(trace.head)):
        return f"release {name}: the ledger is older than that, or another one"
    if trace.left and not entries[name].counts:
        return f"release {name} is there, but {entries[name].state} in the ledger"
    return None
