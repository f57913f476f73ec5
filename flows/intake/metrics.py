"""What the intake's service counts, for Prometheus: outcomes, and nothing of whom.

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
from curvote.server.admission import REASONS, USED, Refused

# Names the folder; the library reads it when it is imported.
FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"
ACCEPTED: Final = "accepted"
BEFORE: Final = "accepted before"


class Metrics:
    """The counts of one process."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a time of arrival, of the first of a kind
        self._own = CollectorRegistry()
        given: dict[str, Any] = {"namespace": "curvote_intake", "registry": self._own}
        self._envelopes = Counter(
            "envelopes", "Envelopes by outcome", ["outcome"], **given
        )
        self._transactions = Counter("transactions", "Transactions", **given)
        self._requests = Counter("uploads", "Uploads by status", ["status"], **given)
        self._waiting = Gauge(
            "waiting", "Envelopes that wait", multiprocess_mode="livesum", **given
        )
        self._ready = Gauge(
            "ready", "Processes that accept", multiprocess_mode="livesum", **given
        )
        for name in (ACCEPTED, BEFORE, *(each for each in REASONS if each != USED)):
            self._envelopes.labels(name)

    def committed(self, told: Sequence[Refused | None]) -> None:
        """Count one transaction."""
        self._transactions.inc()
        for name, count in Counts(map(_name, told)).items():
            self._envelopes.labels(name).inc(count)

    def answered(self, status: int) -> None:
        """Count one upload."""
        self._requests.labels(str(status)).inc()

    def state(self, *, waiting: int, ready: bool) -> None:
        """Say how it is now."""
        self._waiting.set(waiting)
        self._ready.set(ready)

    def page(self) -> bytes:
        """Return the counts of all processes as Prometheus reads them."""
        if FOLDER not in os.environ:
            return generate_latest(self._own)
        for path in Path(os.environ[FOLDER]).glob("gauge_live*.db"):
            pid = path.stem.rpartition("_")[2]
            if not is_alive(f"pid:{pid}"):
                multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call]
        every = CollectorRegistry()
        multiprocess.MultiProcessCollector(every)  # type: ignore[no-untyped-call]
        return generate_latest(every)


def _name(refused: Refused | None) -> str:
    if refused is None:
        return ACCEPTED
    return BEFORE if refused.reason == USED else refused.reason
