"""Releases in production: checks before them, and sessions of clients on this machine.

``ledger.per_client`` of pipelines.yaml sets the cap of a population at its first
release. Afterwards a higher value there is refused: a cap is raised by a command of its
own, which says what it does. A lower value holds for the releases of that pipeline: two
pipelines of one population may differ, and asking for less is nobody's loss.

A session reserves, draws, publishes and confirms. One rename publishes; it is the
moment at which noise leaves. Before it a kill costs nobody anything: the reservation is
taken back. After it nothing is drawn again.
"""

import fcntl
import json
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base.durable import private_folder, sync_folder
from curvote.base.errors import UserError
from curvote.base.object_store import is_remote
from curvote.base.privacy import Budget
from curvote.chain.lookup import find_system
from curvote.chain.stage import stage_functions
from curvote.intake.admission import Round
from curvote.intake.box import Intake
from curvote.intake.store import store_exists
from curvote.ledger.book import Ledger, open_existing
from curvote.messages import stages
from curvote.messages.amplification import task_crowd_size
from curvote.messages.message import learning_messages, messages_of
from curvote.pipeline.config.file import ConfiguredPipeline
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.source import RawInput
from curvote.pipeline.plan.step import (
    Population,
    ReleaseState,
    Step,
    file_digest,
    find_people,
)
from curvote.pipeline.release import evidence
from curvote.pipeline.release.windows import (
    accept_waiting,
    accepted_in_windows,
    decide_windows,
    find_round,
    is_over,
    release_of,
    release_windows,
)
from curvote.pipeline.store import locations
from curvote.pipeline.store.artifacts import (
    MANIFEST,
    Artifact,
    artifact,
    commit,
    open_to_readers,
    write_json,
)
from curvote.wire.task import AnyTask


def refuse_higher_cap(ledger: Ledger, population: str, requested: Budget) -> None:
    """Refuse a cap in pipelines.yaml above that of the ledger, if it has one."""
    cap = ledger.cap(population)
    if cap and (requested.epsilon > cap.epsilon or requested.delta > cap.delta):
        raise UserError(
            f"per_client allows {requested} for each client of population"
            f" {population!r}, but the ledger's cap is {cap}, set when the first"
            " release was made."
            " Nothing is released. Write that cap here, or raise it for good:"
            f" `{raise_cap_command(population, requested, cap)}`.",
            where=("ledger", "per_client"),
        )


def set_up_cap(ledger: Ledger, population: str, requested: Budget) -> None:
    """Set the cap of a population at its first release; refuse a higher one later."""
    if ledger.cap(population) is None:
        ledger.set_cap(population, requested)
    refuse_higher_cap(ledger, population, requested)


def raise_cap_command(population: str, requested: Budget, cap: Budget) -> str:
    """Return the command that raises ``cap`` so that it holds ``stated``."""
    words = ["curvote", "ledger", "raise-cap", shlex.quote(population)]
    words += ["--cap", _full_number(max(requested.epsilon, cap.epsilon))]
    if requested.delta > cap.delta:
        words += ["--cap-delta", _full_number(requested.delta)]
    return " ".join(words)


def _full_number(value: float) -> str:
    """Return a number in full: a rounded one might be a lower cap."""
    return repr(float(value)).removesuffix(".0")


def check_before_release(
    project: Project,
    configured: ConfiguredPipeline,
    people: Population,
    *,
    new_people: bool,
    writing: bool,
) -> None:
    """Refuse a release that contradicts ledger, caps or known populations.

    UserError, with what to do: a ledger that is gone or older, a cap above the
    ledger's, known people under a new name. ``writing``: a run, not a plan, so what a
    killed one left out of the second copy is added.
    """
    accounts = evidence.ProjectAccounts(project)
    witnesses = accounts.witnesses
    evidence.refuse_incomplete_ledger(project, witnesses, accounts.populations)
    with open_existing(project.ledger) or nullcontext() as ledger:
        if ledger is None:
            return
        if writing:
            evidence.copies(project, witnesses).complete(ledger)
        pipeline = configured.pipeline
        if pipeline.ledger:
            cap = Budget(**pipeline.ledger.per_client.model_dump())
            refuse_higher_cap(ledger, pipeline.population, cap)
        evidence.refuse_strangers(ledger, configured, people, new_people=new_people)
        if writing:
            evidence.report_separate_population(ledger, configured)


def release_state(
    project: Project,
    configured: ConfiguredPipeline,
    raw: tuple[RawInput, ...],
    *,
    new_release: bool = False,
    new_people: bool = False,
    closing: bool = False,
) -> ReleaseState:
    """Return the state of a production pipeline: cohort, numbers and rounds.

    UserError: the ledger, its cap or the clients are not those of earlier releases
    (``new_people``: the user says that these are others). ``closing`` freezes a round
    that has enough envelopes, or folds in what came to one that stays open: a run does,
    a plan does not.
    """
    pipeline = configured.pipeline
    done = _release_numbers(project, configured)
    windows = release_windows(configured)

    def release_number(base: str) -> int:
        last = done.get(base, 0)
        if windows and last:
            latest = find_round(project, f"{base}-{last}")
            more = new_release or (latest is not None and is_over(latest, windows))
            return min(last + more, windows.count)
        return last + 1 if new_release and last else max(last, 1)

    def accepted_digest(round_id: str) -> str | None:
        if windows:
            return accepted_in_windows(project, configured, round_id, closing=closing)
        round_ = find_round(project, round_id)
        if round_ is None or not round_.complete:
            return None
        least = _min_batch(configured, round_)
        ends = least is None
        return accept_waiting(project, round_, least or 1, closing=closing, ends=ends)

    cohort = "by envelope"
    if pipeline.intake is None:
        people = find_people(project, configured, raw)
        how = {"new_people": new_people, "writing": closing}
        check_before_release(project, configured, people, **how)
        cohort = people.cohort
    witnesses = evidence.ProjectAccounts(project).witnesses
    return ReleaseState(cohort, release_number, accepted_digest, witnesses)


def _release_numbers(
    project: Project, configured: ConfiguredPipeline
) -> dict[str, int]:
    if configured.pipeline.intake:
        rounds: list[Round] = []
        if store_exists(project.intake):
            with Intake(project.intake) as intake:
                rounds = intake.rounds(configured.name)
        ids = [round_.id.rpartition("-") for round_ in rounds]
        pairs = [(base, int(number)) for base, _, number in ids]
    else:
        recorded = evidence.ledger_entries(project, configured.pipeline.population)
        facts = [e.facts for e in recorded if e.counts and "base" in e.facts]
        pairs = [(str(fact["base"]), int(fact["number"])) for fact in facts]
    return dict(sorted(pairs))


def decide_release(
    project: Project, configured: ConfiguredPipeline, step: Step
) -> Step:
    """Return a releasing step with its action and the reason."""
    release = release_of(step)
    problem = artifact(project, step.stage.name, step.key).problem(content=True)
    if release.by_envelope:
        return _decide_round(project, configured, step, problem)
    action, reason = _decide_local(project, step, problem)
    return replace(step, action=action, reason=reason)


def _decide_local(project: Project, step: Step, problem: str | None) -> tuple[str, str]:
    """Return action and reason of a release of clients on this machine."""
    entries = evidence.ledger_entries(project)
    entry = next((e for e in entries if e.release == step.key), None)
    state = entry.state if entry else "cancelled"
    if problem is None:
        if state == "reserved":
            return "run", "published, to be confirmed in the ledger"
        if state == "cancelled":
            reason = "the ledger does not know it: `curvote ledger restore FILE` first"
            return "blocked", reason
        return "reuse", f"released once (release {release_of(step).number})"
    if state == "cancelled" and problem == "missing":
        return "run", "never released"
    if state == "reserved" and problem == "missing":
        return "run", "ended before it was published: goes on"
    return "blocked", LOST_ARTIFACT


LOST_ARTIFACT = (
    "released before, but its file is gone or altered: put it back from a backup, or"
    " release again with --new-release (that spends again)"
)


def _decide_round(
    project: Project, configured: ConfiguredPipeline, step: Step, problem: str | None
) -> Step:
    release = release_of(step)
    if release_windows(configured):
        return decide_windows(project, configured, step, problem)
    round_ = find_round(project, release.id)
    if round_ is None or not round_.complete:
        came, needed = _envelope_counts(project, configured, step)
        of = f"of {needed}" if needed else "for each public record, once these are read"
        reason = f"waits for {release.message}s: {came} {of}"
        return replace(step, action="blocked", reason=reason)
    if problem is None:
        facts = artifact(project, step.stage.name, step.key).metadata
        pipeline = configured.pipeline
        worse = find_system(pipeline.protocol).needs_new_round(pipeline, facts)
        reason = _describe_round(round_) + ("; the newest are worse" if worse else "")
        return replace(step, action="reuse", reason=reason)
    least = _min_batch(configured, round_) or 1
    if not round_.folded and round_.waiting < least:
        reason = (
            f"waits for {release.message}s: {round_.waiting} of {least} to begin with"
        )
        return replace(step, action="blocked", reason=reason)
    reason = f"{round_.accepted} envelopes are in"
    if round_.folded and not round_.closed:
        reason = _describe_round(round_)
    return replace(step, action="run", reason=reason)


def _min_batch(configured: ConfiguredPipeline, round_: Round) -> int | None:
    """Return the minimum batch of a round that stays open; None: it closes.

    None: the round closes once it is complete, since what is asked next depends on it.
    """
    waits = configured.pipeline.intake
    last = [*learning_messages(configured.pipeline.protocol)][-1]
    return waits.fold if waits and waits.online and round_.asks == last else None


def _describe_round(round_: Round) -> str:
    """Return the state of a complete round in words."""
    if round_.closed:
        return "round closed"
    waiting = f"{round_.waiting} waiting"
    return f"round open, {round_.folded} {round_.asks}s used, {waiting}"


def min_envelopes(
    configured: ConfiguredPipeline, step: Step, records: Sequence[str] | None
) -> int:
    """Return how many envelopes a round waits for.

    ``public_records`` are their names, None where no message is tied to one.
    """
    pipeline = configured.pipeline
    name = release_of(step).message
    minimum = pipeline.intake.stated_minimum(name) if pipeline.intake else None
    if minimum is None and records is not None:
        return len(records)
    kind = messages_of(pipeline.protocol)[name]
    if minimum is None and pipeline.intake and release_windows(configured):
        minimum = min(pipeline.intake.fold, kind.invited_count(configured.values()))
    return int(minimum or kind.invited_count(configured.values()))


def public_records(project: Project, step: Step) -> list[str] | None:
    """Return the names of the public records of a round; None: it has none.

    They stand in the tables that its step reads; before those are made: none yet.
    """
    kind = messages_of(step.params["protocol"])[release_of(step).message]
    if not kind.per_record:
        return None
    inputs = {name: artifact(project, *at) for name, at in step.sources.items()}
    if any(source.problem(content=False) for source in inputs.values()):
        return []
    return [*kind.records(lambda stage, table: inputs[stage].columns(table, (0,)))]


def _envelope_counts(
    project: Project, configured: ConfiguredPipeline, step: Step
) -> tuple[int, int]:
    """Return the numbers of accepted and of needed envelopes of a round."""
    round_ = find_round(project, release_of(step).id)
    if round_:
        return round_.accepted, round_.needed
    return 0, min_envelopes(configured, step, public_records(project, step))


def merge_round_counts(
    project: Project, configured: ConfiguredPipeline, steps: Sequence[Step]
) -> list[Step]:
    """Return steps; rounds with one sender each share one count of envelopes."""
    kinds = messages_of(configured.pipeline.protocol)
    counts: dict[str, list[tuple[int, int]]] = {}
    for step in steps:
        if step.release and step.release.by_envelope:
            count = _envelope_counts(project, configured, step)
            counts.setdefault(step.release.message, []).append(count)
    reasons = {
        name: f"waits for {name}s: {sum(n for n, _ in pairs)} of"
        f" {sum(of for _, of in pairs)}"
        for name, pairs in counts.items()
        if kinds[name].per_table
    }
    return [
        replace(step, reason=reasons[step.release.message])
        if step.action == "blocked" and step.release and step.release.message in reasons
        else step
        for step in steps
    ]


def block_dependents(steps: Sequence[Step]) -> list[Step]:
    """Block the steps that read from a blocked step."""
    blocked: dict[tuple[str, str], str] = {}
    decided: list[Step] = []
    for step in steps:
        waits = [blocked[i] for i in step.sources.values() if i in blocked]
        now = step
        if waits:
            reason, *also = (f"waits for {name}" for name in dict.fromkeys(waits))
            now = replace(step, action="blocked", reason=reason, also=tuple(also))
        if now.action == "blocked":
            blocked[step.id] = step.stage.name
        decided.append(now)
    return decided


def refuse_force(steps: Sequence[Step], forced: dict[str, str]) -> None:
    """Refuse to recompute what production released (UserError)."""
    frozen = {step.stage.name for step in steps if step.frozen} & set(forced)
    if frozen:
        stage = next(s.stage.name for s in steps if s.stage.name in frozen)
        option = forced[stage].removeprefix("forced by ")
        raise UserError(
            f"{option}: production makes {stage} once; again would be a second release."
            " --new-release does that on purpose, if every client has room."
        )


Compute = Callable[[], Path]


def release_step(
    project: Project, step: Step, target: Path, compute: Compute
) -> Artifact:
    """Return the artifact of a release, which is drawn at most once.

    ``compute`` makes the finished temporary folder. UserError: the ledger is not the
    one that counted earlier releases, a client has no room (nothing is drawn), or the
    release is spent and its artifact is not there.
    """
    release_facts = step.components["release"]
    witnesses = release_facts["witnesses"]
    with (
        hold_ledger(project),
        _open_ledger(project, witnesses, release_facts["population"]) as ledger,
        _copies_updated(project, ledger, witnesses),
    ):
        settle_release(ledger, project, step, target)
        if locations.artifact_exists(target):
            return Artifact(target)
        temporary = locations.temporary_folder(project, target)
        temporary.mkdir(mode=0o700)  # what is not published is nobody's to read
        sync_folder(temporary.parent)
        try:
            _reserve_release(ledger, project, step)
            # Before anything is drawn.
            evidence.copies(project, witnesses).update(ledger)
            artifact = commit(_with_chain_head(compute(), ledger), target)
        except BaseException:
            _cancel_reservation(ledger, step.key, target, temporary)
            raise
        _confirm_release(ledger, project, step.key, artifact)
    return artifact


def _open_ledger(project: Project, witnesses: Sequence[str], population: str) -> Ledger:
    evidence.refuse_incomplete_ledger(project, witnesses, {population})
    return Ledger(project.ledger)


@contextmanager
def hold_ledger(project: Project, *, exclusive: bool = False) -> Iterator[None]:
    """Hold the lock of the ledger's file; ``alone``: to replace the file.

    UserError: a release is going on, so that nothing can take its ledger's place.
    """
    locks = private_folder(project.state) / "locks"
    locks.mkdir(exist_ok=True)
    with (locks / "ledger").open("w") as handle:
        kind = fcntl.LOCK_EX | fcntl.LOCK_NB if exclusive else fcntl.LOCK_SH
        try:
            fcntl.flock(handle, kind)
        except BlockingIOError:
            raise UserError(
                "a release is going on, and its ledger stays where it is meanwhile."
                " Nothing was changed; give the command again when the run has ended."
            ) from None
        yield


@contextmanager
def _copies_updated(
    project: Project, ledger: Ledger, witnesses: Sequence[str]
) -> Iterator[None]:
    """Update all copies before and after; one that is not writable stops it."""
    evidence.copies(project, witnesses).update(ledger)
    try:
        yield
    finally:
        evidence.copies(project, witnesses).update(ledger)


def _with_chain_head(folder: Path, ledger: Ledger) -> Path:
    """Add the head of the ledger's chain to a finished manifest."""
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    sequence, head = ledger.top()
    manifest["release"] |= {"head": head, "sequence": sequence}
    write_json(folder / MANIFEST, manifest)
    return folder


def settle_release(ledger: Ledger, project: Project, step: Step, target: Path) -> None:
    """Make ledger and store consistent after an interrupted release.

    Published: confirm. Only a temporary folder: take the reservation back, then delete
    it; if it was finished for an object store, tables may be there already: the rest
    follows. Neither: nobody knows, so it counts as spent.
    """
    temporary = locations.temporary_folder(project, target)
    entry = ledger.entry(step.key)
    state = entry.state if entry else "cancelled"
    published = Artifact(target).problem(content=True)
    if state == "cancelled":
        if target.exists():
            raise UserError(f"{target} holds a release that the ledger does not know.")
        shutil.rmtree(temporary, ignore_errors=True)
    elif published is None and state == "spent":
        return  # a restored ledger was told of it, and it is there
    elif published is None:
        _confirm_release(ledger, project, step.key, Artifact(target))
    elif state == "reserved" and _may_be_uploaded(temporary, target):
        artifact = commit(_with_chain_head(temporary, ledger), target)
        _confirm_release(ledger, project, step.key, artifact)
    elif state == "reserved" and temporary.exists() and not target.exists():
        _cancel_reservation(ledger, step.key, target, temporary)
    else:
        if state == "reserved":
            ledger.mark_spent(step.key, "neither published nor being made")
        raise UserError(f"{step.name}: {LOST_ARTIFACT}.")


def _cancel_reservation(
    ledger: Ledger, release_id: str, target: Path, temporary: Path
) -> None:
    """Cancel a reservation whose noise never left; then delete its traces."""
    if _may_be_uploaded(temporary, target) or target.exists():
        return
    entry = ledger.entry(release_id)
    if entry and entry.state == "reserved":
        ledger.cancel(release_id)
    with suppress(FileNotFoundError):
        shutil.rmtree(temporary)


def _may_be_uploaded(temporary: Path, target: Path) -> bool:
    """Return whether tables may be on an object store without their manifest."""
    return is_remote(target) and (temporary / MANIFEST).is_file()


def _confirm_release(
    ledger: Ledger, project: Project, release_id: str, artifact: Artifact
) -> None:
    open_to_readers(artifact.path)
    place = str(artifact.path.relative_to(project.root))
    digest = file_digest(artifact.path / MANIFEST)
    ledger.confirm(release_id, place=place, digest=digest)


def _reserve_release(ledger: Ledger, project: Project, step: Step) -> None:
    facts, client_ids = step.components["release"], sender_ids(project, step)
    task = task_of_step(project, step)
    cap = Budget(**facts["cap"])
    set_up_cap(ledger, facts["population"], cap)
    n = len(client_ids)
    crowd = task_crowd_size(stages.stage_message(step.params), task, n)
    ledger.reserve(
        step.key,
        client_ids,
        task.cost(),
        population=facts["population"],
        facts=release_facts(step) | {"task": task.digest(), "crowd": crowd},
        limit=cap,
    )


def sender_ids(project: Project, step: Step) -> NDArray[np.int64]:
    """Return the ids (n,) of the clients who send in a step.

    No other column of theirs is read.
    """
    clients = artifact(project, *step.sources["ingest"])
    rows = stages.stored_sending_rows(clients, step.params, (0,))
    parts = clients.shards("clients", (0,), ("client_id",))
    ids: NDArray[np.int64] = np.concatenate([part["client_id"] for part in parts])
    return ids[rows]


def task_of_step(project: Project, step: Step) -> AnyTask:
    """Return the task of a releasing step, made from its inputs."""
    inputs = {n: artifact(project, *at) for n, at in step.sources.items()}
    task: AnyTask = stage_functions(step.stage.module).task(inputs, step.params)
    return task


def release_facts(step: Step) -> dict[str, Any]:
    """Return the ledger's facts of a release that follow from its step alone."""
    step_release = release_of(step)
    return {
        "pipeline": step.components["release"]["pipeline"],
        "stage": step.stage.name,
        "message": step_release.message,
        "cohort": step.components["release"]["cohort"],
        "base": step_release.base,
        "number": step_release.number,
    }


def provenance(step: Step) -> dict[str, Any]:
    """Return the manifest's entry about the origin of a step's messages."""
    if step.release is None:
        return {}
    if step.release.by_envelope:
        return {"round": {"id": step.release.id, "number": step.release.number}}
    return {"release": {"id": step.key, "number": step.release.number}}
