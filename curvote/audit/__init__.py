"""Audit of privacy claims: exact losses, events, supports, odd inputs, releases."""

from typing import TYPE_CHECKING

from curvote.lazy import exports

__all__ = ["MessageSubject", "Row", "Subject", "gallery", "of_task", "run", "shipped"]

if TYPE_CHECKING:
    from curvote.audit.broken.gallery import gallery
    from curvote.audit.choice import of_task, shipped
    from curvote.audit.message_subject import MessageSubject
    from curvote.audit.row import Row
    from curvote.audit.subject import Subject
    from curvote.audit.verdict import run
else:
    __getattr__ = exports(
        __name__,
        {
            "MessageSubject": "message_subject",
            "Row": "row",
            "Subject": "subject",
            "gallery": "broken.gallery",
            "of_task": "choice",
            "run": "verdict",
            "shipped": "choice",
        },
    )
