"""Answers and metrics of the intake service: outcomes, without any identity.

No metric has a time, an address or a name that was sent. Several processes of one
service count together, in a folder of their own.
"""

from __future__ import annotations

import os
from collections import Counter as Counts
from collections.abc import Sequence
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

from curvote.flows.environment import is_alive
from curvote.server.admission import REASONS, USED_INVITATION, RefusedEnvelope

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
