"""What a client asks of a task before it reads its own record: refusals tell nothing.

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
from curvote.protocols.answering import fixed
from curvote.protocols.message import message_of
from curvote.representation import canonical
from curvote.representation.rescale import rescale
from curvote.task import Asked, Task
from curvote.task_form import SMALLEST_SCALE, looks

# What separates words in a list: "yes, certainly" would be two classes in one.
SEPARATORS = ",;|/"


def judged(document: Any, server: str | None = None) -> Asked:
    """Return the task that a document holds, if a client may answer it at all.

    It is what ``server`` is asked, where the task asks several by name.

    UserError: another form, numbers out of range, a basis that is not the one it is
    called, classes that are no words, an unknown question, or a mechanism that cannot
    be built. Neither a record nor the system's entropy is touched.
    """
    task = tasks.read(document)
    # Else two texts would have one digest, and invitations to the one fit the other.
    if strict_json.canonical(task.to_json()) != strict_json.canonical(document):
        raise UserError(
            "the task is not written in its one form, so that its digest is not that of"
            " its text: something was altered, or another program wrote it."
        )
    asked = task if server is None else task.only(server)
    _guarded(_admit, asked)
    return asked


def check_invitation(task: Asked, invitation: Invitation) -> None:
    """Refuse an invitation to another task, or about what this one does not ask.

    That is a candidate that is not up for a vote, or a record where none is told of.
    """
    if invitation.task != task.digest() or invitation.asks != task.asks:
        raise UserError(
            f"the invitation is to task {invitation.task[:12]}, but the task is"
            f" {task.digest()[:12]}; they belong to different rounds."
        )
    if message_of(task).tied != (invitation.record is not None):
        wants, names = ("no", "one") if invitation.record else ("a", "none")
        raise UserError(
            f"a {task.asks} belongs to {wants} public record, but the invitation names"
            f" {names}."
        )
    about, up = invitation.about, task.candidates
    if up is None and about is not None:
        raise UserError("the invitation is about a candidate, but none is up for one.")
    if up is not None and (about is None or not 0 <= about < len(up.coef)):
        raise UserError(
            f"the invitation is about candidate {about}; up for a vote are 0 to"
            f" {len(up.coef) - 1}."
        )


def _guarded(admit: Callable[[Asked], None], task: Asked) -> None:
    """Call ``admit``; whatever fails on somebody else's task is the task's fault."""
    try:
        with np.errstate(all="ignore"):
            admit(task)
    except (UserError, ModuleNotFoundError):  # the latter is no fault of the task
        raise
    except Exception as error:  # noqa: BLE001 - a task must never crash its client
        raise UserError(
            f"this task cannot be answered: it fails with {type(error).__name__}."
        ) from None


def _admit(task: Asked) -> None:
    if len({looks(word) for word in task.classes}) < len(task.classes):
        raise UserError("two of the task's classes look alike: who could tell them?")
    for word in task.classes:
        if set(word) & set(SEPARATORS):
            raise UserError(
                f"class {validate.shown(word)} is no single word or phrase: it holds"
                f" one of {' '.join(SEPARATORS)}."
            )
    if isinstance(task, Task):
        _admit_encoding(task)
    message_of(task).admit(task)
    if isinstance(task, Task):
        # The first draw of all is about a record that everybody knows.
        message_of(task).draw(task, fixed(task, 0), SeededEntropy(0))


def _admit_encoding(task: Task) -> None:
    encoding = task.encoding
    canonical.check(encoding.projection)
    rescale(encoding.rescale, np.zeros((1, encoding.d)), encoding.constants)
    if encoding.rescale == "min_max":
        _check_width(encoding.constants)


def _check_width(constants: Any) -> None:
    if not (constants["upper"] - constants["lower"] >= 2 * SMALLEST_SCALE).all():
        raise UserError(f"upper must be at least {2 * SMALLEST_SCALE:g} above lower.")
