"""Checks before releases, and the state of releases that a production plan needs.

``ledger.per_client`` of pipelines.yaml sets the cap of a population at its first
release. Afterwards a higher value there is refused: a cap is raised by a command of its
own, which says what it does. A lower value holds for the releases of that pipeline: two
pipelines of one population may differ, and asking for less is nobody's loss.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

from curvote.base.errors import InternalError, UserError
from curvote.base.privacy import Budget
from curvote.chain.lookup import find_system
from curvote.intake.admission import Round
from curvote.intake.box import Intake
from curvote.intake.store import store_exists
from curvote.ledger.book import Ledger, open_existing
from curvote.messages.message import messages_of
from curvote.pipeline.config.file import ConfiguredPipeline
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.source import RawInput
from curvote.pipeline.plan import identity
from curvote.pipeline.plan.identity import Population
from curvote.pipeline.plan.step import Release, ReleaseState, Step
from curvote.pipeline.release import evidence, populations
from curvote.pipeline.store.artifacts import artifact


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
    words += ["--epsilon", _full_number(max(requested.epsilon, cap.epsilon))]
    if requested.delta > cap.delta:
        words += ["--delta", _full_number(requested.delta)]
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
            evidence.complete_copies(project, ledger, witnesses)
        pipeline = configured.pipeline
        if pipeline.ledger:
            cap = Budget(**pipeline.ledger.per_client.model_dump())
            refuse_higher_cap(ledger, pipeline.population, cap)
        populations.refuse_strangers(ledger, configured, people, new_people=new_people)
        if writing:
            populations.report_separate_population(ledger, configured)


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

    def release_number(base: str) -> int:
        last = done.get(base, 0)
        return last + 1 if new_release and last else max(last, 1)

    def accepted_digest(round_id: str) -> str | None:
        round_ = find_round(project, round_id)
        if round_ is None or not round_.complete:
            return None
        if round_.closed:
            return round_.accepted_digest
        least = _min_batch(configured, round_)
        with Intake(project.intake) as intake:
            if not closing:
                ready = round_.waiting >= (least or 1)
                return "complete" if ready else intake.folded(round_id)
            return intake.fold(round_id, least) if least else intake.close(round_id)

    cohort = "by envelope"
    if pipeline.intake is None:
        people = identity.find_people(project, configured, raw)
        how = {"new_people": new_people, "writing": closing}
        check_before_release(project, configured, people, **how)
        cohort = people.cohort
    witnesses = evidence.ProjectAccounts(project).witnesses
    return ReleaseState(cohort, release_number, accepted_digest, witnesses)


def _release_numbers(
    project: Project, configured: ConfiguredPipeline
) -> dict[str, int]:
    """Return the latest release number of each base."""
    if configured.pipeline.intake:
        rounds: list[Round] = []
        if store_exists(project.intake):
            with Intake(project.intake) as intake:
                rounds = intake.rounds(configured.name)
        ids = [round_.id.rpartition("-") for round_ in rounds]
        pairs = [(base, int(number)) for base, _, number in ids]
    else:
        recorded = populations.ledger_entries(project, configured.pipeline.population)
        facts = [e.facts for e in recorded if e.counts and "base" in e.facts]
        pairs = [(str(fact["base"]), int(fact["number"])) for fact in facts]
    return dict(sorted(pairs))


def find_round(project: Project, round_id: str) -> Round | None:
    """Return the round of an id; None: it was never opened."""
    if not store_exists(project.intake):
        return None
    with Intake(project.intake) as intake:
        return intake.round(round_id)


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


def release_of(step: Step) -> Release:
    """Return the release of a step; InternalError: it has none."""
    if step.release is None:
        raise InternalError(f"{step.name} releases nothing")
    return step.release


def _decide_local(project: Project, step: Step, problem: str | None) -> tuple[str, str]:
    """Return action and reason of a release of clients on this machine."""
    entry = next(
        (e for e in populations.ledger_entries(project) if e.release == step.key), None
    )
    state = entry.state if entry else "cancelled"
    if problem is None:
        if state == "reserved":
            return "run", "published, not yet confirmed"
        if state == "cancelled":
            reason = "the ledger does not know this release: restore the ledger"
            return "blocked", reason
        return "reuse", f"released once (release {release_of(step).number})"
    if state == "cancelled" and problem == "missing":
        return "run", "never released"
    if state == "reserved" and problem == "missing":
        return "run", "interrupted before it was published"
    return "blocked", LOST_ARTIFACT


LOST_ARTIFACT = (
    "released before, and its artifact is gone or altered: restore it from a backup,"
    " or draw anew with --new-release (that spends again)"
)


def _decide_round(
    project: Project, configured: ConfiguredPipeline, step: Step, problem: str | None
) -> Step:
    release = release_of(step)
    round_ = find_round(project, release.id)
    if round_ is None or not round_.complete:
        came, needed = _envelope_counts(project, configured, step)
        reason = (
            f"{release.message}s {came} of {needed or 'as many as there are records'}"
        )
        return replace(step, action="blocked", reason=reason)
    if problem is None:
        facts = artifact(project, step.stage.name, step.key).metadata
        pipeline = configured.pipeline
        worse = find_system(pipeline.protocol).needs_new_round(pipeline, facts)
        reason = _describe_round(round_) + ("; the newest are worse" if worse else "")
        return replace(step, action="reuse", reason=reason)
    least = _min_batch(configured, round_) or 1
    if not round_.folded and round_.waiting < least:
        reason = f"{release.message}s {round_.waiting} of {least} for a first batch"
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
    last = [*messages_of(configured.pipeline.protocol)][-1]
    return waits.fold if waits and waits.online and round_.asks == last else None


def _describe_round(round_: Round) -> str:
    """Return the state of a complete round in words."""
    if round_.closed:
        return "round closed"
    waiting = f"{round_.waiting} waiting"
    return f"round open, {round_.folded} {round_.asks}s folded in, {waiting}"


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
        name: f"{name}s {sum(n for n, _ in pairs)} of {sum(of for _, of in pairs)}"
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
