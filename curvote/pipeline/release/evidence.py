"""Populations that release, and the traces of releases in a project's store.

The first file of a kind that releases is population ``table`` or ``curves``, as its
source is called. Another file beside it is a population of its own, called by its path.
What is not certain stays with the first: a ledger that counts two peoples together
counts too much; the other mistake would give somebody a second budget.
"""

import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from posixpath import normpath
from typing import Any, Final

from curvote.base.errors import UserError
from curvote.base.object_store import as_path
from curvote.base.privacy import Budget
from curvote.chain.lookup import find_system
from curvote.chain.registry import SYSTEMS
from curvote.ledger.amounts import Entry
from curvote.ledger.book import Ledger, open_existing
from curvote.ledger.traces import (
    Copies,
    Trace,
    foreign_releases,
    missing_releases,
    refuse_unknown_releases,
)
from curvote.pipeline.config.file import ConfiguredPipeline, PipelinesFile
from curvote.pipeline.config.project import PIPELINES, Project
from curvote.pipeline.config.source import reads_user_file
from curvote.pipeline.config.yaml_document import load_document
from curvote.pipeline.plan.step import Population, file_digest
from curvote.pipeline.store import records
from curvote.pipeline.store.artifacts import MANIFEST, read_manifest
from curvote.pipeline.store.locations import artifact_exists, server_store


def with_population(
    project: Project, configured: ConfiguredPipeline, book: Ledger | None = None
) -> ConfiguredPipeline:
    """Return a pipeline with its population stated, if it releases a user's file.

    It is the one that the ledger tells: ``book``, or the project's own.
    """
    pipeline, accounts = configured.pipeline, configured.pipeline.ledger
    local = pipeline.production and not pipeline.intake
    local = local and reads_user_file(pipeline.source)
    if not local or accounts is None or accounts.population:
        return configured
    entries = book.entries() if book else ledger_entries(project)
    counting = [entry for entry in entries if entry.counts]
    population = _choose_population(project, configured, counting)
    ledger_settings = accounts.model_copy(update={"population": population})
    pipeline = pipeline.model_copy(update={"ledger": ledger_settings})
    (only,) = configured.settings  # production is one setting
    settings = (replace(only, pipeline=pipeline),)
    return replace(configured, pipeline=pipeline, settings=settings)


def ledger_entries(project: Project, population: str | None = None) -> list[Entry]:
    """Return the entries of the project's ledger; none if it does not exist."""
    ledger = open_existing(project.ledger)
    if ledger is None:
        return []
    with ledger:
        return ledger.entries(population)


def population_of_file(source: Mapping[str, Any]) -> str | None:
    """Return the population name of a source's file; None: it has no file."""
    path = source.get("path")
    return normpath(str(path)).replace("s3:/", "s3://") if path else None


def _choose_population(
    project: Project, configured: ConfiguredPipeline, entries: Sequence[Entry]
) -> str:
    first, source = configured.pipeline.population, configured.pipeline.source
    previous = [
        e.population for e in entries if e.facts.get("pipeline") == configured.name
    ]
    if previous:
        return previous[-1]
    owners = {e.facts.get("pipeline") for e in entries if e.population == first}
    path = population_of_file(source)
    if not path:
        return first
    pipelines, paths = PipelinesFile(project).values["pipelines"], []
    for owner in owners:
        pipeline = pipelines.get(owner)
        owned = pipeline.get("source") if isinstance(pipeline, dict) else None
        paths.append(population_of_file(owned) if isinstance(owned, dict) else None)
    # It is another file if all earlier releases came from others.
    return path if paths and all(other and other != path for other in paths) else first


# Name of the ledger's setting which says that a population is new people.
_NEW_PEOPLE: Final = "new people of {}"


def refuse_strangers(
    ledger: Ledger,
    configured: ConfiguredPipeline,
    people: Population,
    *,
    new_people: bool,
) -> None:
    """Refuse a cohort that looks like known people under a new name: UserError.

    With ``new_people`` the ledger is told that they are others instead.
    """
    suspicion = _suspicion_of_cohort(ledger, configured, people)
    declared = f"new people {people.cohort}"
    if suspicion is None or ledger.setting(declared) is not None:
        return
    if new_people:
        population = configured.pipeline.population
        ledger.store_setting(declared, population)
        ledger.store_setting(_NEW_PEOPLE.format(population), "told")
        return
    raise UserError(
        f"{suspicion} Nothing is released. Only if these are other people: `curvote"
        f" run {configured.name} --new-people`.",
        where=("ledger", "population"),
    )


def report_separate_population(ledger: Ledger, configured: ConfiguredPipeline) -> None:
    """Report that a file is counted as a population of its own."""
    population = configured.pipeline.population
    populations = {e.population for e in ledger.entries() if e.counts}
    separate = population == population_of_file(configured.pipeline.source)
    if separate and population not in populations:
        print(
            f"curvote: the clients of {population} are counted as a population of"
            f" their own, apart from {', '.join(sorted(populations))}. If some are the"
            " same people under other ids, end this run now and write `population:`.",
            file=sys.stderr,
        )


def _suspicion_of_cohort(
    ledger: Ledger, configured: ConfiguredPipeline, people: Population
) -> str | None:
    """Return the reason why a cohort may be known people, or None."""
    population = configured.pipeline.population
    counting = [e for e in ledger.entries() if e.counts]
    if not counting or any(e.facts.get("cohort") == people.cohort for e in counting):
        return None
    earlier = [
        e.population for e in counting if e.facts.get("pipeline") == configured.name
    ]
    if earlier and population not in earlier:
        return _renamed_message(configured.name, earlier[-1], population)
    arguments = ledger, configured, people, counting
    return _suspicion_of_overlap(*arguments) or _suspicion_of_respelling(*arguments)


def _suspicion_of_respelling(
    ledger: Ledger,
    configured: ConfiguredPipeline,
    people: Population,
    counting: Sequence[Entry],
) -> str | None:
    """Return the reason why ids may be respelt ids of known people, or None."""
    population = configured.pipeline.population
    n, n_known = len(people.senders), ledger.count_spenders(population)
    new = n - ledger.count_overlap(population, people.senders)
    if 2 * new <= n:
        return None
    for other in sorted({e.population for e in counting} - {population}):
        if 2 * ledger.count_overlap(other, people.senders) > n:
            return _renamed_message(configured.name, other, population)
    absent = n_known - ledger.count_overlap(population, people.everybody)
    if absent and absent >= min(new, n_known / 2):
        return (
            f"{new} of {n} clients of {configured.name} are new to"
            f" population {population!r}, while {absent} of its {n_known} known"
            " clients are not in the source any more: if their ids were only written in"
            " another way (1000 as p1000 or 01000), write them as before."
        )
    return None


def _suspicion_of_overlap(
    ledger: Ledger,
    configured: ConfiguredPipeline,
    people: Population,
    counting: Sequence[Entry],
) -> str | None:
    """Return the reason why people of two files may be the same, or None.

    That they are others was for nobody to say: the file's path names the population.
    """
    population = configured.pipeline.population
    if population != population_of_file(configured.pipeline.source):
        return None
    if ledger.setting(_NEW_PEOPLE.format(population)) is not None:
        return None
    for other in sorted({e.population for e in counting} - {population}):
        n = ledger.count_overlap(other, people.senders)
        if n:
            return (
                f"{n} of {len(people.senders)} clients of {configured.name} have ids"
                f" that are known in population {other!r}, where they have spent. If"
                f" they are the same people, write `population: {other}`."
            )
    return None


def _renamed_message(name: str, before: str, population: str) -> str:
    return (
        f"the clients of {name} are known in population {before!r}, where they have"
        f" spent; as population {population!r} they would begin anew. Write"
        f" `population: {before}` again."
    )


def copies(project: Project, named: Iterable[str] = ()) -> Copies:
    """Return the copies of a project's ledger, with the witnesses of these paths."""
    return Copies(project.root, project.state / "releases.jsonl", tuple(named))


class ProjectAccounts:
    """The ledger settings of all pipelines of a project.

    A witness tells of the whole ledger, so each release writes to all that are named,
    whichever pipeline names them; and a pipeline that is wrong stops no other.
    """

    def __init__(self, project: Project) -> None:
        values, _ = load_document(project.pipelines_file, PIPELINES)
        file = _as_mapping(values)
        defaults = _as_mapping(file.get("defaults"))
        self._pipelines = [
            defaults | _as_mapping(pipeline)
            for pipeline in _as_mapping(file.get("pipelines")).values()
        ]

    @property
    def witnesses(self) -> tuple[str, ...]:
        """The paths of all witnesses, as they are written."""
        paths = (account["witness"] for account, _ in self._accounts_with_names())
        return tuple(dict.fromkeys(str(path) for path in paths if path))

    @property
    def populations(self) -> frozenset[str]:
        """The populations whose clients release from this project, or may."""
        return frozenset(n for _, names in self._accounts_with_names() for n in names)

    def caps(self, population: str) -> list[Budget]:
        """Return the caps that pipelines of a population allow each client."""
        budgets = []
        for account, names in self._accounts_with_names():
            if population in names:
                with suppress(UserError, TypeError, ValueError):
                    budgets.append(Budget(**_as_mapping(account.get("per_client"))))
        return budgets

    def _accounts_with_names(self) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
        """Yield each account with the names that its population may have."""
        empty = dict.fromkeys(("witness", "population"))
        sources = [_as_mapping(pipeline.get("source")) for pipeline in self._pipelines]
        files = {population_of_file(source) for source in sources} - {None}
        for pipeline, source in zip(self._pipelines, sources, strict=True):
            account = pipeline.get("ledger")
            if isinstance(account, dict) and source:
                population = account.get("population") or source.get("name")
                path = None if account.get("population") else population_of_file(source)
                # One file alone is never called by its path.
                more = (path,) if path and len(files) > 1 else ()
                yield empty | account, (str(population), *more)


def _as_mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def refuse_incomplete_ledger(
    project: Project, named: Iterable[str] = (), populations: Container[str] = ()
) -> None:
    """Refuse a ledger file that does not know all releases (UserError)."""
    traces = find_traces(project, named)
    with open_existing(project.ledger) or nullcontext() as ledger:
        copies(project, named).refuse_missing_witnesses(ledger)
        refuse_unknown_releases(project.ledger, traces, ledger, populations)


Manifests = list[tuple[Path, dict[str, Any] | None]]


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


def find_traces(project: Project, named: Iterable[str] = ()) -> list[Trace]:
    """Return all traces: of manifests, the copy, run records and witnesses."""
    traces = []
    for folder, manifest in artifact_manifests(project):
        if manifest and "release" in manifest:
            about = manifest["release"] if isinstance(manifest["release"], dict) else {}
            where = str(folder.relative_to(project.root))
            traces.append(Trace(where, about.get("id"), about.get("head")))
    traces += copies(project).traces()
    for protocol, stage, release, run in records.released_steps(project):
        stages = find_system(protocol).all_stages if protocol in SYSTEMS else ()
        if any(stage == s.name and s.message for s in stages):
            traces.append(Trace(f"the record of run {run}", release))
    return [*traces, *copies(project, named).witness_traces()]


def ledger_problems(project: Project) -> list[str]:
    """Return the problems of the project's ledger and store, a line each.

    Beyond `Ledger.problems`: the ledger knows all that manifests, the append-only copy
    and run records tell of (`missing_releases`: a run refuses to release
    otherwise), what a confirmed release published is where it was put, with the
    manifest that was confirmed (SHA-256), and every manifest can be read.
    """
    # The store first: a release that is recorded while we look comes too late for it.
    accounts = ProjectAccounts(project)
    torn = [
        f"{folder.relative_to(project.root)}: no readable manifest, so nobody knows"
        " what it released"
        for folder, manifest in artifact_manifests(project)
        if manifest is None
    ]
    traces = find_traces(project, accounts.witnesses)
    populations = accounts.populations
    ledger = open_existing(project.ledger)
    if ledger is None:
        foreign = foreign_releases(traces, None, populations)
        return [*torn, *missing_releases(traces, None), *foreign]
    with ledger:
        entries = ledger.entries()
        problems = [*ledger.problems(), *missing_releases(traces, ledger)]
        problems += foreign_releases(traces, ledger, populations)
    for entry in entries:
        if entry.place is None:  # not confirmed
            continue
        manifest_path = as_path(entry.place, project.root) / MANIFEST
        if not manifest_path.is_file():
            problems.append(f"release {entry.release}: {entry.place} is missing")
        elif file_digest(manifest_path) != entry.digest:
            changed = (
                f"release {entry.release}: {entry.place} is not what was confirmed"
            )
            problems.append(changed)
    return [*problems, *torn]
