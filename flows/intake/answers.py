"""Answers and metrics of the intake service: outcomes, without any identity.

No metric has a time, an address or a name that was sent. Several processes of one
service count together, in a folder of their own.
"""

from __future__ import annotations

import os
from collections import Counter as Counts
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    disable_created_metrics,
    generate_latest,
    multiprocess,
)
from starlette.responses import Response

from curvote.flows.environment import is_alive
from curvote.intake.admission import REASONS, USED_INVITATION, RefusedEnvelope
from curvote.wire.strict_json import canonical_json

# Names the folder; the library reads it when it is imported.
COUNTS_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
ACCEPTED: Final = "accepted"
ACCEPTED_BEFORE: Final = "accepted before"


class IntakeMetrics:
    """The counters of one process of the service."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a time of arrival, of the first of a kind
        self._registry = CollectorRegistry()
        options: dict[str, Any] = {
            "namespace": "curvote_intake",
            "registry": self._registry,
        }
        self._envelopes = Counter(
            "envelopes", "Envelopes by outcome", ["outcome"], **options
        )
        self._transactions = Counter("transactions", "Transactions", **options)
        self._requests = Counter("uploads", "Uploads by status", ["status"], **options)
        self._waiting = Gauge(
            "waiting", "Envelopes that wait", multiprocess_mode="livesum", **options
        )
        self._ready = Gauge(
            "ready", "Processes that accept", multiprocess_mode="livesum", **options
        )
        for name in (
            ACCEPTED,
            ACCEPTED_BEFORE,
            *(reason for reason in REASONS if reason != USED_INVITATION),
        ):
            self._envelopes.labels(name)

    def count_transaction(self, outcomes: Sequence[RefusedEnvelope | None]) -> None:
        """Count one transaction."""
        self._transactions.inc()
        for name, count in Counts(map(_outcome_name, outcomes)).items():
            self._envelopes.labels(name).inc(count)

    def count_upload(self, status: int) -> None:
        """Count one upload."""
        self._requests.labels(str(status)).inc()

    def set_state(self, *, waiting: int, ready: bool) -> None:
        """Set the current number of waiting envelopes, and readiness."""
        self._waiting.set(waiting)
        self._ready.set(ready)

    def render_page(self) -> bytes:
        """Return the counts of all processes in Prometheus' text form."""
        if COUNTS_VARIABLE not in os.environ:
            return generate_latest(self._registry)
        for path in Path(os.environ[COUNTS_VARIABLE]).glob("gauge_live*.db"):
            pid = path.stem.rpartition("_")[2]
            if not is_alive(f"pid:{pid}"):
                multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call]
        every = CollectorRegistry()
        multiprocess.MultiProcessCollector(every)  # type: ignore[no-untyped-call]
        return generate_latest(every)


def _outcome_name(refused: RefusedEnvelope | None) -> str:
    if refused is None:
        return ACCEPTED
    return ACCEPTED_BEFORE if refused.reason == USED_INVITATION else refused.reason


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
