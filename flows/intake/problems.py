"""What the intake's service answers: outcomes, and problem details (RFC 9457)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from curvote.server.admission import USED, Refused
from curvote.strict_json import canonical

_TYPE: Final = "urn:curvote:intake:"
JSON: Final = "application/json"
PROBLEM: Final = "application/problem+json"
# Of each reason of the intake: the status of its answer. A used invitation is none.
STATUS: Final = {
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
class Problem(Exception):  # noqa: N818 - an answer
    """A request that is not done: ``name`` is its type's, ``title`` says what it is.

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
        """The answer; whoever sent too much, or comes too early, is hung up on."""
        headers = {"Cache-Control": "no-store"}
        if self.wait is not None:
            headers["Retry-After"] = str(self.wait)
        if self.status in {408, 413, 429, 503}:
            headers["Connection"] = "close"
        return Response(canonical(self.details), self.status, headers, PROBLEM)


DRAINS: Final = Problem(503, "draining", "the service is about to end", wait=5)
FULL: Final = Problem(429, "queue-full", "too many envelopes wait already", wait=2)
FAILED: Final = Problem(
    503, "unavailable", "the intake cannot be written now: send all again", wait=5
)
BROKEN: Final = Problem(500, "internal-error", "the service broke: nothing is certain")
SLOW: Final = Problem(408, "too-slow", "the request took too long to come")
_ACCEPTED: Final = {"status": 201, "title": "accepted"}
_BEFORE: Final = {"status": 200, "title": "accepted before"}


def outcome(refused: Refused | None) -> dict[str, Any]:
    """Return what became of an envelope as plain JSON values.

    One that came under a used invitation, rightly sealed, was accepted before: the
    same, or another one of this client, which counts for it.
    """
    if refused is None:
        return _ACCEPTED
    return _BEFORE if refused.reason == USED else refusal(refused).details


def refusal(refused: Refused) -> Problem:
    """Return the problem of an envelope that was refused."""
    reason = refused.reason
    name = reason.replace("'", "").replace(" ", "-")
    return Problem(STATUS[reason], name, reason, str(refused))


def answer(refused: Refused | None) -> Response:
    """Return the answer to one envelope."""
    told = outcome(refused)
    media = JSON if told in (_ACCEPTED, _BEFORE) else PROBLEM
    return Response(canonical(told), told["status"], _NOT_KEPT, media)


def answers(refused: list[Refused | None]) -> Response:
    """Return the answer to several: one outcome a line, in their order."""
    lines = b"".join(canonical(outcome(each)) + b"\n" for each in refused)
    return Response(lines, 200, _NOT_KEPT, "application/jsonl")


_NOT_KEPT: Final = {"Cache-Control": "no-store"}
