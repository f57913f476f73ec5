"""Evidence of releases outside the ledger, and the populations that released.

A ledger that is gone, fresh, or older than it was gives clients a budget that they have
spent. Each release leaves traces elsewhere: the manifest of its artifact, a line of the
append-only copy, the record of its run, and a line of each witness outside the project.

The first file of a kind that releases is population ``table`` or ``curves``, as its
source is called. Another file beside it is a population of its own, called by its path.
What is not certain stays with the first: a ledger that counts two peoples together
counts too much; the other mistake would give somebody a second budget.
"""

import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from posixpath import normpath
from typing import Any, Final

from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.chain.lookup import find_system
from curvote.chain.registry import SYSTEMS
from curvote.ledger.amounts import EVERYONE_SETTING, Entry
from curvote.ledger.book import Ledger, open_existing
from curvote.ledger.journal import Journal, JournalLine
from curvote.ledger.queries import LedgerReader
from curvote.pipeline.config.file import ConfiguredPipeline, PipelinesFile
from curvote.pipeline.config.project import PIPELINES, Project
from curvote.pipeline.config.source import reads_user_file
from curvote.pipeline.config.yaml_document import load_document
from curvote.pipeline.plan.step import Population
from curvote.pipeline.store import records
from curvote.pipeline.store.artifacts import read_manifest
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
    return normpath(str(path)) if path else None


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


_USED_WITNESS: Final = "witness "  # name of a setting: a witness that was written once


def copy_path(project: Project) -> Path:
    """Return the path of the second copy."""
    return project.state / "releases.jsonl"


def copy_lines(project: Project) -> list[JournalLine]:
    """Return the readable lines of the second copy, oldest first."""
    return _second_copy(project).lines()


def _second_copy(project: Project) -> Journal:
    return Journal(copy_path(project), "the second copy of what was released")


def update_copies(project: Project, ledger: Ledger, named: Iterable[str] = ()) -> int:
    """Append the ledger's news to the second copy and to the witnesses.

    Returns how many lines were new to the copy. They are durable on return. A file that
    cannot be written, or a witness that was written once and is gone: UserError.
    """
    copy_path(project).parent.mkdir(parents=True, exist_ok=True)
    added = _second_copy(project).catch_up(ledger)
    for witness in open_witnesses(project, named):
        refuse_missing_witness(witness, ledger)
        witness.catch_up(ledger)
        ledger.store_setting(f"{_USED_WITNESS}{witness.path}", "used")
    return added


def complete_copies(project: Project, ledger: Ledger, named: Iterable[str]) -> None:
    """Complete all copies; report a second copy that is written again."""
    path = copy_path(project)
    missing = not path.exists()
    if update_copies(project, ledger, named) and missing:
        words = "was not there: it was written again from the ledger"
        print(f"curvote: {path} {words}.", file=sys.stderr)


def refuse_missing_witness(witness: Journal, ledger: LedgerReader | None) -> None:
    """Refuse to start a missing witness again that was used before: UserError."""
    used = ledger and ledger.setting(f"{_USED_WITNESS}{witness.path}") is not None
    if used and not witness.exists():
        raise UserError(
            f"{witness.path}, {witness.description}, is gone. Bring it back (is its"
            " disk mounted?); if it is lost, name another file under `ledger: {witness:"
            " ...}`: the ledger writes all that it knows into it. Nothing is released"
            " before."
        )


def open_witnesses(project: Project, named: Iterable[str]) -> list[Journal]:
    """Return the witnesses of these paths; inside the project: UserError.

    A relative path begins at the project's folder.
    """
    root, paths = project.root.resolve(), list[Path]()
    for name in named:
        try:
            path = (root / Path(name).expanduser()).resolve()
        except (RuntimeError, ValueError):  # a user who is not there, a loop of links
            message = f"the witness {name!r} is no path of a file."
            raise UserError(message, where=("ledger", "witness")) from None
        if path.is_relative_to(root):
            raise UserError(
                f"the witness {name} lies inside the project {root}: a backup that is"
                " put back would take it back, too. Name a file elsewhere, on another"
                " disk or machine if there is one.",
                where=("ledger", "witness"),
            )
        paths.append(path)
    return [Journal(path) for path in dict.fromkeys(paths)]


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
        for witness in open_witnesses(project, witnesses):
            refuse_missing_witness(witness, ledger)
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
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{problems[0]}{more}"


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
        foreign = _is_foreign(trace, origin)
        problem = None if foreign else _trace_problem(trace, ledger, entries)
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
    traces = []
    for folder, manifest in artifact_manifests(project):
        if manifest and "release" in manifest:
            about = manifest["release"] if isinstance(manifest["release"], dict) else {}
            where = str(folder.relative_to(project.root))
            traces.append(Trace(where, about.get("id"), about.get("head")))
    where = str(copy_path(project).relative_to(project.root))
    for line in copy_lines(project):
        about_line = line["release"], line["head"]
        traces.append(Trace(where, *about_line, published=False, line=line))
    for protocol, stage, release, run in records.released_steps(project):
        stages = find_system(protocol).production if protocol in SYSTEMS else ()
        if any(stage == s.name and s.message for s in stages):
            traces.append(Trace(f"the record of run {run}", release))
    for witness in open_witnesses(project, witnesses):
        for line in witness.lines():
            where, about_line = str(witness.path), (line["release"], line["head"])
            ledger = str(line.get("ledger"))
            trace = Trace(where, *about_line, published=False, line=line, ledger=ledger)
            traces.append(trace)
    return traces


def _trace_problem(
    trace: Trace, ledger: Ledger | None, entries: Mapping[str, Entry]
) -> str | None:
    """Return what a trace shows to be wrong with the ledger, or None."""
    name = trace.release
    if not isinstance(name, str):
        return "a release without an id"
    if name not in entries:
        if ledger and (
            ledger.setting(f"{EVERYONE_SETTING}{name}") is not None
            or (not trace.published and ledger.accepted_head(str(trace.head)))
        ):
            return None  # a restored ledger accounts for it
        return f"release {name} is not in the ledger"
    if trace.head is not None and not (ledger and ledger.knows(trace.head)):
        return f"release {name}: the ledger is older than that, or another one"
    if trace.published and not entries[name].counts:
        return f"release {name} is there, but {entries[name].state} in the ledger"
    return None
