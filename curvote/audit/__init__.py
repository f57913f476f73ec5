"""Audit of privacy claims: exact losses, events, supports, odd inputs, releases."""

from typing import TYPE_CHECKING

from curvote.base.lazy import exports

__all__ = [
    "MessageSubject",
    "Row",
    "Subject",
    "check_dataset",
    "check_learner",
    "check_mechanism",
    "gallery",
    "of_task",
    "run",
    "shipped",
]

if TYPE_CHECKING:
    from curvote.audit.choice import of_task, shipped
    from curvote.audit.message_subject import MessageSubject
    from curvote.audit.plugins import check_dataset, check_learner, check_mechanism
    from curvote.audit.twins import gallery
    from curvote.audit.verdict import run
    from curvote.checks.subject import Row, Subject
else:
    __getattr__ = exports(
        __name__,
        {
            "MessageSubject": "message_subject",
            "Row": "curvote.checks.subject",
            "Subject": "curvote.checks.subject",
            "check_dataset": "plugins",
            "check_learner": "plugins",
            "check_mechanism": "plugins",
            "gallery": "twins",
            "of_task": "choice",
            "run": "verdict",
            "shipped": "choice",
        },
    )
