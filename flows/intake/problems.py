"""Answers of the intake service: outcomes, and problem details (RFC 9457)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from curvote.server.admission import USED_INVITATION, RefusedEnvelope
from curvote.strict_json import canonical_json

_TYPE: Final = "urn:curvote:intake:"
JSON_TYPE: Final = "application/json"
PROBLEM_TYPE: Final = "application/problem+json"
# Of each reason of the intake: the status of its answer. A used invitation is none.
REASON_STATUS: Final = {
    "unreadable": 400,
    "unknown invitation": 403,
    "another round": 409,
    "unknown task": 404,
    "wrong seal": 403,
    "not sealed": 400,
    "another round's seal": 400,
    "record answered": 409,
    "round closed": 410,
    "impossible message": 422,
    "another record": 403,
    "unknown record": 422,
}


@dataclass(eq=False)
class RequestProblem(Exception):  # noqa: N818 - an answer
    """A request that is not done: ``name`` is its type, ``title`` describes it.

    ``wait`` is after how many seconds it may be sent again, None: as it is, never.
    """

    status: int
    name: str
    title: str
    detail: str = ""
    wait: int | None = None

    @property
    def details(self) -> dict[str, Any]:
        """Problem details as plain JSON values."""
        named = {"type": f"{_TYPE}{self.name}", "title": self.title}
        more = {"detail": self.detail} if self.detail else {}
        return {**named, "status": self.status, **more}

    @property
    def response(self) -> Response:
        """The response; connections that send too much or too early are closed."""
        headers = {"Cache-Control": "no-store"}
        if self.wait is not None:
            headers["Retry-After"] = str(self.wait)
        if self.status in {408, 413, 429, 503}:
            headers["Connection"] = "close"
        return Response(
            canonical_json(self.details), self.status, headers, PROBLEM_TYPE
        )


DRAINING_PROBLEM: Final = RequestProblem(
    503, "draining", "the service is about to end", wait=5
)
QUEUE_FULL: Final = RequestProblem(
    429, "queue-full", "too many envelopes wait already", wait=2
)
UNAVAILABLE: Final = RequestProblem(
    503, "unavailable", "the intake cannot be written now: send all again", wait=5
)
INTERNAL_ERROR: Final = RequestProblem(
    500, "internal-error", "the service broke: nothing is certain"
)
TOO_SLOW: Final = RequestProblem(408, "too-slow", "the request took too long to come")
_ACCEPTED: Final = {"status": 201, "title": "accepted"}
_BEFORE: Final = {"status": 200, "title": "accepted before"}


def outcome_document(refused: RefusedEnvelope | None) -> dict[str, Any]:
    """Return the outcome of an envelope as plain JSON values.

    One that came under a used invitation, rightly sealed, was accepted before: the
    same, or another one of this client, which counts for it.
    """
    if refused is None:
        return _ACCEPTED
    return (
        _BEFORE
        if refused.reason == USED_INVITATION
        else refusal_problem(refused).details
    )


def refusal_problem(refused: RefusedEnvelope) -> RequestProblem:
    """Return the problem of a refused envelope."""
    reason = refused.reason
    name = reason.replace("'", "").replace(" ", "-")
    return RequestProblem(REASON_STATUS[reason], name, reason, str(refused))


def envelope_response(refused: RefusedEnvelope | None) -> Response:
    """Return the response to one envelope."""
    document = outcome_document(refused)
    media = JSON_TYPE if document in (_ACCEPTED, _BEFORE) else PROBLEM_TYPE
    return Response(canonical_json(document), document["status"], _NOT_KEPT, media)


def batch_response(refused: list[RefusedEnvelope | None]) -> Response:
    """Return the response to a batch, one outcome a line, in order."""
    lines = b"".join(
        canonical_json(outcome_document(refused_one)) + b"\n" for refused_one in refused
    )
    return Response(lines, 200, _NOT_KEPT, "application/jsonl")


_NOT_KEPT: Final = {"Cache-Control": "no-store"}
