"""Releases that go on: rounds in windows of time, and what each step of a round is.

A message that is asked for in windows has one round for each. A window's round takes
late answers while later ones ask, and all rounds together are one release, of which
every run uses what came since the last one.
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from curvote.base.errors import InternalError
from curvote.intake.admission import Round
from curvote.intake.box import Intake
from curvote.intake.store import store_exists
from curvote.messages.message import Windows, messages_of
from curvote.pipeline.config.file import ConfiguredPipeline
from curvote.pipeline.config.project import Project
from curvote.pipeline.plan.step import Release, Step


def find_round(project: Project, round_id: str) -> Round | None:
    """Return the round of an id; None: it was never opened."""
    if not store_exists(project.intake):
        return None
    with Intake(project.intake) as intake:
        return intake.round(round_id)


def release_of(step: Step) -> Release:
    """Return the release of a step; InternalError: it has none."""
    if step.release is None:
        raise InternalError(f"{step.name} releases nothing")
    return step.release


def release_windows(configured: ConfiguredPipeline) -> Windows | None:
    """Return the windows in which a pipeline asks; None: it asks once."""
    if configured.pipeline.intake is None:
        return None
    kinds, values = messages_of(configured.pipeline.protocol), configured.values()
    every = (kind.windows(values) for kind in kinds.values())
    return next(filter(None, every), None)


def is_over(round_: Round, windows: Windows, since: float = 0.0) -> bool:
    """Say whether a round's window ended ``since`` seconds ago.

    A schedule of that length comes some seconds early at times: a twentieth counts as
    all of it.
    """
    closes = datetime.fromisoformat(str(getattr(round_.task, "closes", "")))
    remaining = (closes - datetime.now(UTC)).total_seconds() + since
    return remaining <= windows.length / 20


def rounds_of_windows(project: Project, round_id: str) -> list[Round]:
    """Return the rounds of all windows up to that of a round, as far as they opened."""
    base, _, number = round_id.rpartition("-")
    every = (find_round(project, f"{base}-{k + 1}") for k in range(int(number)))
    return [round_ for round_ in every if round_ is not None]


def accepted_in_windows(
    project: Project, configured: ConfiguredPipeline, round_id: str, *, closing: bool
) -> str | None:
    """Return the digests of what all windows have folded in, None of nothing.

    ``closing`` folds in what waits where it is enough that no answer stands alone, and
    closes the rounds that take no late answers any more.
    """
    waits, windows = configured.pipeline.intake, release_windows(configured)
    if waits is None or windows is None:
        raise InternalError(f"{configured.name} asks in no windows")
    digests = []
    for round_ in rounds_of_windows(project, round_id):
        ends = is_over(round_, windows, since=windows.late)
        how = {"closing": closing, "ends": ends, "as_look": True}
        name = accept_waiting(project, round_, waits.fold, **how)
        if name == COMPLETE:
            return name
        if name:
            digests.append(f"{round_.id} {name}")
    return ", ".join(digests) or None


COMPLETE: Final = "complete"


def accept_waiting(
    project: Project,
    round_: Round,
    least: int,
    *,
    closing: bool,
    ends: bool,
    as_look: bool = False,
) -> str | None:
    """Return the digest of what a round has folded in, None of nothing.

    ``closing`` folds in what waits, ``least`` messages or more, and closes a round that
    ``ends``; without it `COMPLETE` says that a run would.
    """
    ready = round_.waiting >= least and not round_.closed
    with Intake(project.intake) as intake:
        if round_.closed or not closing:
            return COMPLETE if ready else intake.folded(round_.id)
        if ends and (ready or round_.folded):
            return intake.close(round_.id, least, as_look=as_look)
        return intake.fold(round_.id, least, as_look=as_look)


def decide_windows(
    project: Project, configured: ConfiguredPipeline, step: Step, problem: str | None
) -> Step:
    """Return the step of a release that goes on: it waits for its first answers only.

    Whatever came since is used by the next run.
    """
    rounds = rounds_of_windows(project, release_of(step).id)
    folded, waiting = sum(r.folded for r in rounds), sum(r.waiting for r in rounds)
    name = release_of(step).message
    if not step.params["accepted"]:
        least = configured.pipeline.intake.fold if configured.pipeline.intake else 1
        reason = f"waits for {name}s: {waiting} of {least} to begin with"
        return replace(step, action="blocked", reason=reason)
    reason = f"window {release_of(step).number}, {folded} {name}s used, {waiting} wait"
    return replace(step, action="run" if problem else "reuse", reason=reason)
