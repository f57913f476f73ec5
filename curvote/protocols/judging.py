"""Validation of a task before a client reads its own record.

A refusal that depends on the record is an answer without noise. So everything that can
be wrong with a task is found here, from the task alone; what a record can do afterwards
is bounded (`curvote.task_form`), and `curvote.protocols.answering` never refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from curvote import strict_json, validate
from curvote.chain import tasks
from curvote.entropy import SeededEntropy
from curvote.envelope import Invitation
from curvote.errors import UserError
from curvote.protocols.answering import stand_in_inputs
from curvote.protocols.message import message_of
from curvote.representation import canonical
from curvote.representation.rescale import rescale
from curvote.task import AnyTask, Task
from curvote.task_form import SMALLEST_SCALE, confusable_form

# What separates words in a list: "yes, certainly" would be two classes in one.
SEPARATORS = ",;|/"


def validate_task(document: Any, server: str | None = None) -> AnyTask:
    """Return the task of a document, if a client may answer it at all.

    It is what ``server`` is asked, where the task asks several by name.

    UserError: another form, numbers out of range, a basis that is not the one it is
    called, classes that are no words, an unknown question, or a mechanism that cannot
    be built. Neither a record nor the system's entropy is touched.
    """
    task = tasks.read_task(document)
    # Else two texts would have one digest, and invitations to the one fit the other.
    if strict_json.canonical_json(task.to_json()) != strict_json.canonical_json(
        document
    ):
        raise UserError(
            "the task is not written in its one form, so that its digest is not that of"
            " its text: something was altered, or another program wrote it."
        )
    server_task = task if server is None else task.for_server(server)
    _run_guarded(_check_task, server_task)
    return server_task


def check_invitation(task: AnyTask, invitation: Invitation) -> None:
    """Refuse an invitation to another task or about another subject.

    That is a candidate that is not up for a vote, or a record where none is told of.
    """
    if invitation.task != task.digest() or invitation.asks != task.asks:
        raise UserError(
            f"the invitation is to task {invitation.task[:12]}, but the task is"
            f" {task.digest()[:12]}; they belong to different rounds."
        )
    if message_of(task).per_record != (invitation.record is not None):
        wanted, named = ("no", "one") if invitation.record else ("a", "none")
        raise UserError(
            f"a {task.asks} belongs to {wanted} public record, but the invitation names"
            f" {named}."
        )
    about, candidates = invitation.about, task.candidates
    if candidates is None and about is not None:
        raise UserError("the invitation is about a candidate, but none is up for one.")
    if candidates is not None and (
        about is None or not 0 <= about < len(candidates.coef)
    ):
        raise UserError(
            f"the invitation is about candidate {about}; up for a vote are 0 to"
            f" {len(candidates.coef) - 1}."
        )


def _run_guarded(check: Callable[[AnyTask], None], task: AnyTask) -> None:
    """Run a check; whatever fails on somebody else's task is its fault."""
    try:
        with np.errstate(all="ignore"):
            check(task)
    except (UserError, ModuleNotFoundError):  # the latter is no fault of the task
        raise
    except Exception as error:  # noqa: BLE001 - a task must never crash its client
        raise UserError(
            f"this task cannot be answered: it fails with {type(error).__name__}."
        ) from None


def _check_task(task: AnyTask) -> None:
    if len({confusable_form(word) for word in task.classes}) < len(task.classes):
        raise UserError("two of the task's classes look alike: who could tell them?")
    for word in task.classes:
        if set(word) & set(SEPARATORS):
            raise UserError(
                f"class {validate.format_value(word)} is no single word or phrase: it"
                " holds"
                f" one of {' '.join(SEPARATORS)}."
            )
    if isinstance(task, Task):
        _check_encoding(task)
    message_of(task).check_task(task)
    if isinstance(task, Task):
        # The first draw of all is about a record that everybody knows.
        message_of(task).draw(task, stand_in_inputs(task, 0), SeededEntropy(0))


def _check_encoding(task: Task) -> None:
    encoding = task.encoding
    canonical.check_projection(encoding.projection)
    rescale(encoding.rescale, np.zeros((1, encoding.d)), encoding.constants)
    if encoding.rescale == "min_max":
        _check_bounds_width(encoding.constants)


def _check_bounds_width(constants: Any) -> None:
    if not (constants["upper"] - constants["lower"] >= 2 * SMALLEST_SCALE).all():
        raise UserError(f"upper must be at least {2 * SMALLEST_SCALE:g} above lower.")
