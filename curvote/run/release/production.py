"""What production knows before it plans, and what may be done with each release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from curvote.chain.lookup import system
from curvote.client.ledger import Entry, existing
from curvote.errors import InternalError, UserError
from curvote.protocols.message import messages
from curvote.run.config.file import Configured
from curvote.run.config.source import Raw
from curvote.run.plan import identity
from curvote.run.plan.step import Release, Standing, Step
from curvote.run.project import Project
from curvote.run.release import before_releasing, releases_log
from curvote.run.store.artifacts import artifact
from curvote.server.intake import Intake
from curvote.server.intake_base import there
from curvote.server.rounds import Round


def standing(
    project: Project,
    configured: Configured,
    raw: tuple[Raw, ...],
    *,
    new_release: bool = False,
    new_people: bool = False,
    closing: bool = False,
) -> Standing:
    """Return cohort, release numbers and complete rounds of a production pipeline.

    UserError: the ledger, its cap or the clients are not those of earlier releases
    (``new_people``: the user says that these are others). ``closing`` freezes a round
    that has enough envelopes, or folds in what came to one that stays open: a run does,
    a plan does not.
    """
    pipeline = configured.pipeline
    done = _numbers(project, configured)

    def number(base: str) -> int:
        known = done.get(base, 0)
        return known + 1 if new_release and known else max(known, 1)

    def accepted(round_id: str) -> str | None:
        return _accepted(project, configured, round_id, closing=closing)

    cohort = "by envelope"
    if pipeline.intake is None:
        people = identity.people(project, configured, raw)
        before_releasing.check(
            project, configured, people, new_people=new_people, writing=closing
        )
        cohort = people.cohort
    witnesses = releases_log.Accounts(project).witnesses
    return Standing(cohort, number, accepted, witnesses)


def _accepted(
    project: Project, configured: Configured, round_id: str, *, closing: bool
) -> str | None:
    """Return what names the envelopes of a complete round."""
    found = round_of(project, round_id)
    if found is None or not found.complete:
        return None
    if found.closed:
        return found.accepted_digest
    least = _batch(configured, found)
    with Intake(project.intake) as intake:
        if not closing:
            ready = found.waiting >= (least or 1)
            return "complete" if ready else intake.folded(round_id)
        return intake.fold(round_id, least) if least else intake.close(round_id)


def _numbers(project: Project, configured: Configured) -> dict[str, int]:
    """Return the latest release number of every base that was ever released."""
    if configured.pipeline.intake:
        ids = [r.id.rpartition("-") for r in _rounds(project, configured.name)]
        pairs = [(base, int(number)) for base, _, number in ids]
    else:
        known = entries(project, configured.pipeline.population)
        facts = [e.facts for e in known if e.counts and "base" in e.facts]
        pairs = [(str(fact["base"]), int(fact["number"])) for fact in facts]
    return dict(sorted(pairs))


def entries(project: Project, population: str | None = None) -> list[Entry]:
    """Return what the project's ledger holds; nothing where there is none yet."""
    ledger = existing(project.ledger)
    if ledger is None:
        return []
    with ledger:
        return ledger.entries(population)


def _rounds(project: Project, pipeline: str) -> list[Round]:
    if not there(project.intake):
        return []
    with Intake(project.intake) as intake:
        return intake.rounds(pipeline)


def round_of(project: Project, round_id: str) -> Round | None:
    """Return a round of envelopes, if it was opened."""
    if not there(project.intake):
        return None
    with Intake(project.intake) as intake:
        return intake.round(round_id)


def decide(project: Project, configured: Configured, step: Step) -> Step:
    """Return a releasing step with what will be done about it, and why."""
    release = needed(step)
    problem = artifact(project, step.stage.name, step.key).problem(content=True)
    if release.by_envelope:
        return _by_envelope(project, configured, step, problem)
    action, reason = _here(project, step, problem)
    return replace(step, action=action, reason=reason)


def needed(step: Step) -> Release:
    """Return the release of a step that has one."""
    if step.release is None:
        raise InternalError(f"{step.name} releases nothing")
    return step.release


def _here(project: Project, step: Step, problem: str | None) -> tuple[str, str]:
    """Decide about a release of clients that are here."""
    entry = next((e for e in entries(project) if e.release == step.key), None)
    state = entry.state if entry else "cancelled"
    if problem is None:
        return _published(state, needed(step).number)
    if state == "cancelled" and problem == "missing":
        return "run", "never released"
    if state == "reserved" and problem == "missing":
        return "run", "interrupted before it was published"
    return "blocked", LOST


def _published(state: str, number: int) -> tuple[str, str]:
    if state == "reserved":
        return "run", "published, not yet confirmed"
    if state == "cancelled":
        return "blocked", "the ledger does not know this release: restore the ledger"
    return "reuse", f"released once (release {number})"


LOST = (
    "released before, and its artifact is gone or altered: restore it from a backup,"
    " or draw anew with --new-release (that spends again)"
)


def _by_envelope(
    project: Project, configured: Configured, step: Step, problem: str | None
) -> Step:
    release = needed(step)
    found = round_of(project, release.id)
    if found is None or not found.complete:
        reason = f"{release.message}s {_count(*_counts(project, configured, step))}"
        return replace(step, action="blocked", reason=reason)
    if problem is None:
        facts = artifact(project, step.stage.name, step.key).facts
        pipeline = configured.pipeline
        worse = system(pipeline.protocol).alarm(pipeline, facts)
        reason = _folded(found) + ("; the newest are worse" if worse else "")
        return replace(step, action="reuse", reason=reason)
    least = _batch(configured, found) or 1
    if not found.folded and found.waiting < least:
        reason = f"{release.message}s {found.waiting} of {least} for a first batch"
        return replace(step, action="blocked", reason=reason)
    reason = f"{found.accepted} envelopes are in"
    if found.folded and not found.closed:
        reason = _folded(found)
    return replace(step, action="run", reason=reason)


def _batch(configured: Configured, found: Round) -> int | None:
    """Return the least messages that are folded into a round that stays open.

    None: the round closes once it is complete, since what is asked next depends on it.
    """
    waits = configured.pipeline.intake
    last = [*messages(configured.pipeline.protocol)][-1]
    return waits.fold if waits and waits.online and found.asks == last else None


def _folded(found: Round) -> str:
    """Return what was made of the envelopes of a complete round, in words."""
    if found.closed:
        return "round closed"
    waiting = f"{found.waiting} waiting"
    return f"round open, {found.folded} {found.asks}s folded in, {waiting}"


def minimum(configured: Configured, step: Step, records: Sequence[str] | None) -> int:
    """Return how many envelopes a round waits for; one for each record it asks about.

    ``records`` are their names, None where no message is tied to one.
    """
    pipeline = configured.pipeline
    name = needed(step).message
    stated = pipeline.intake.least(name) if pipeline.intake else None
    if stated is None and records is not None:
        return len(records)
    return int(stated or messages(pipeline.protocol)[name].invited(configured.values()))


def records(project: Project, step: Step) -> list[str] | None:
    """Return the names of the public records that a round asks about; None: of none.

    They stand in the tables that its step reads; before those are made: none yet.
    """
    kind = messages(step.params["protocol"])[needed(step).message]
    if not kind.tied:
        return None
    inputs = {name: artifact(project, *at) for name, at in step.sources.items()}
    if any(each.problem(content=False) for each in inputs.values()):
        return []
    return [*kind.records(lambda stage, table: inputs[stage].columns(table, (0,)))]


def _counts(project: Project, configured: Configured, step: Step) -> tuple[int, int]:
    """Return how many envelopes of a round are in, and how many it waits for."""
    found = round_of(project, needed(step).id)
    if found:
        return found.accepted, found.needed
    return 0, minimum(configured, step, records(project, step))


def _count(came: int, of: int) -> str:
    return f"{came} of {of}" if of else f"{came} of as many as there are records"


def count_together(
    project: Project, configured: Configured, steps: Sequence[Step]
) -> list[Step]:
    """Say of rounds that ask one sender each how many envelopes are in, of all."""
    kinds = messages(configured.pipeline.protocol)
    counts: dict[str, list[tuple[int, int]]] = {}
    for step in steps:
        if step.release and step.release.by_envelope:
            count = _counts(project, configured, step)
            counts.setdefault(step.release.message, []).append(count)
    words = {
        name: f"{name}s {sum(n for n, _ in own)} of {sum(of for _, of in own)}"
        for name, own in counts.items()
        if kinds[name].whole
    }
    return [
        replace(step, reason=words[step.release.message])
        if step.action == "blocked" and step.release and step.release.message in words
        else step
        for step in steps
    ]


def block_what_waits(steps: Sequence[Step]) -> list[Step]:
    """Block what reads from a blocked step."""
    blocked: dict[tuple[str, str], str] = {}
    made: list[Step] = []
    for step in steps:
        waits = [blocked[i] for i in step.sources.values() if i in blocked]
        now = _waiting(step, waits) if waits else step
        if now.action == "blocked":
            blocked[step.id] = step.stage.name
        made.append(now)
    return made


def _waiting(step: Step, stages: Sequence[str]) -> Step:
    reason, *also = (f"waits for {name}" for name in dict.fromkeys(stages))
    return replace(step, action="blocked", reason=reason, also=tuple(also))


def refuse_force(steps: Sequence[Step], forced: dict[str, str]) -> None:
    """Refuse to recompute what production released; aggregate and later are free."""
    frozen = {step.stage.name for step in steps if step.frozen} & set(forced)
    if frozen:
        stage = next(s.stage.name for s in steps if s.stage.name in frozen)
        given = forced[stage].removeprefix("forced by ")
        raise UserError(
            f"{given}: production makes {stage} once; again would be a second release."
            " --new-release does that on purpose, if every client has room."
        )
