"""Figures for Prometheus, on this machine only: no value and no client is among them.

Names and what they count are those of docs/operations.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from curvote.errors import UserError
from curvote.flows.health import last_success
from curvote.flows.output import pace
from curvote.flows.server.launch import HERE
from curvote.flows.serving import heartbeat
from curvote.run import records
from curvote.run.project import Project

if TYPE_CHECKING:
    from prometheus_client import Metric
    from prometheus_client.core import GaugeMetricFamily

_STATUSES = ("completed", "partial", "blocked", "failed", "interrupted", "killed")
_Labels = tuple[str, ...]


@dataclass(eq=False)  # a registry keeps it by what it is
class Figures:
    """What is looked up each time that Prometheus asks.

    ``counted`` is what only the asked process knows: restarts and missed firings.
    """

    project: Project
    serving: bool = False
    counted: dict[_Labels, int] = field(default_factory=dict)
    _rooms: tuple[str, list[tuple[str, float, float]]] = ("", [])

    def count(self, name: str, label: str, by: int = 1) -> None:
        """Count something that has happened to ``label``."""
        self.counted[name, label] = self.counted.get((name, label), 0) + by

    def collect(self) -> Iterator[Metric]:
        """Yield every figure; a part that cannot be read is left out."""
        for part in (self._runs, self._stage, self._serve, self._intake, self._ledger):
            with suppress(UserError, OSError):
                yield from list(part())

    def _runs(self) -> Iterator[Metric]:
        total = _gauge("runs", "Runs on record.", "pipeline", "status")
        success = _gauge("last_success_timestamp_seconds", "End of the last success.")
        for name in records.pipelines(self.project):
            for status in _STATUSES:
                count = len(records.ids(self.project, name, status))
                total.add_metric([name, status], count)
            when = last_success(self.project, name)
            if when is not None:
                success.add_metric([name], when.timestamp())
        yield from (total, success)

    def _stage(self) -> Iterator[Metric]:
        """Tell how far a run of this process is."""
        now = dict(pace.current)  # the run goes on meanwhile
        for what, said in pace.FIGURES.items():
            gauge = _gauge(f"run_{what}", said, "stage")
            if what in now:
                gauge.add_metric([str(now["stage"])], now[what])
            yield gauge

    def _serve(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily

        beat = heartbeat.last(self.project)
        alive = beat is not None and beat.is_alive
        good = alive and beat is not None and not beat.trouble
        yield _single("serve_up", "Whether serve lives.", alive)
        yield _single("serve_scheduling", "Whether schedules fire.", good)
        if not self.serving:
            return
        for name, said, label in (
            ("serve_restarts", "Children started again.", "child"),
            ("missed_firings", "Firings that nothing ran.", "pipeline"),
        ):
            counter = CounterMetricFamily(f"curvote_{name}", said, labels=[label])
            for (what, of), count in dict(self.counted).items():
                if what == name:
                    counter.add_metric([of], count)
            yield counter

    def _intake(self) -> Iterator[Metric]:
        """Tell what rounds wait for, by pipeline and message: counts only."""
        from curvote.server.intake import Intake
        from curvote.server.intake_base import there

        if not there(self.project.intake):
            return
        sums: dict[_Labels, int] = {}
        with Intake(self.project.intake) as intake:
            for each in intake.rounds():
                for what in ("issued", "accepted", "needed"):
                    at = each.pipeline, each.asks, what
                    sums[at] = sums.get(at, 0) + getattr(each, what)
        labels = ("pipeline", "asks", "what")
        yield _filled("intake_envelopes", "Envelopes of all rounds.", labels, sums)

    def _ledger(self) -> Iterator[Metric]:
        """Tell what may still be released about the client with the least room."""
        from curvote.client.ledger import existing

        with existing(self.project.ledger) or _none() as book:
            if book is None:
                return
            head = book.head()
            if head != self._rooms[0]:  # else all clients would be read each time
                self._rooms = head, [*_rooms(book)]
        for part, place in (("epsilon", 1), ("delta", 2)):
            rooms = {(each[0],): float(each[place]) for each in self._rooms[1]}
            said = f"The least {part} that any client of a population has left."
            yield _filled(f"ledger_room_{part}", said, ("population",), rooms)


def _rooms(book: Any) -> Iterator[tuple[str, float, float]]:
    for name, cap in book.caps().items():
        worst = book.worst(name).budget()
        yield name, cap.epsilon - worst.epsilon, cap.delta - worst.delta


def _none() -> Any:
    from contextlib import nullcontext

    return nullcontext()


def _gauge(name: str, said: str, *labels: str) -> GaugeMetricFamily:
    from prometheus_client.core import GaugeMetricFamily

    return GaugeMetricFamily(f"curvote_{name}", said, labels=labels or ("pipeline",))


def _single(name: str, said: str, value: float) -> Metric:
    from prometheus_client.core import GaugeMetricFamily

    return GaugeMetricFamily(f"curvote_{name}", said, value=float(value))


def _filled(
    name: str, said: str, labels: Iterable[str], values: Mapping[Any, float]
) -> Metric:
    gauge = _gauge(name, said, *labels)
    for at, value in values.items():
        gauge.add_metric(list(at), value)
    return gauge


def open_page(figures: Figures, port: int) -> None:
    """Serve the figures at ``port`` of this machine until the process ends.

    UserError: the port cannot be used.
    """
    from prometheus_client import CollectorRegistry, start_http_server

    registry = CollectorRegistry()
    registry.register(figures)
    try:
        server, _ = start_http_server(port, HERE, registry)
    except OSError as error:
        raise UserError(
            f"Port {port} cannot be used: {error.strerror}. Choose another with"
            " --metrics-port."
        ) from None
    server.set_app(_by_its_own_name(server.get_app(), server.server_port))


def _by_its_own_name(page: Any, port: int) -> Any:
    """Return a page that answers under its own address alone.

    A browser that was led here by another name (DNS rebinding) shows that name as Host.
    """
    names = {f"{host}:{port}" for host in (HERE, "localhost", "[::1]")}

    def guarded(environ: Mapping[str, str], start: Any) -> Any:
        if environ.get("HTTP_HOST") in names:
            return page(environ, start)
        start("403 Forbidden", [("Content-Type", "text/plain")])
        return [b"This page answers on this machine only.\n"]

    return guarded
