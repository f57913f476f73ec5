"""Metrics of runs and of `curvote serve` for Prometheus, on this machine only.

Names and what they count are those of docs/operations.md.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from prometheus_client import CollectorRegistry, Metric, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from curvote.base.errors import UserError
from curvote.chain.reputation import Reputation
from curvote.flows import display
from curvote.flows.server.launch import LOOPBACK
from curvote.flows.serving import health
from curvote.flows.serving.health import last_success_time
from curvote.pipeline.config.project import Project
from curvote.pipeline.store import records

_RUN_STATUSES = ("completed", "partial", "blocked", "failed", "interrupted", "killed")
_MODEL_METRICS = ("answers", "value", "low", "high", "alarm")
_Labels = tuple[str, ...]
_Values = dict[_Labels, float]


@dataclass(eq=False)  # a registry keeps it by what it is
class ProjectMetrics:
    """A collector that looks up a project's metrics at each request.

    ``event_counts`` is what only the asked process knows: restarts and missed firings.
    """

    project: Project
    serving: bool = False
    event_counts: dict[_Labels, int] = field(default_factory=dict)
    _remaining_budgets: tuple[str, list[tuple[str, float, float]]] = ("", [])

    def count(self, name: str, label: str, by: int = 1) -> None:
        """Count an event of ``label``."""
        self.event_counts[name, label] = self.event_counts.get((name, label), 0) + by

    def collect(self) -> Iterator[Metric]:
        """Yield every metric; a part that cannot be read is left out."""
        parts = [self._run_metrics, self._stage_metrics, self._serve_metrics]
        parts += [self._intake_metrics, self._ledger_metrics, self._model_metrics]
        for part in parts:
            with suppress(UserError, OSError):
                yield from list(part())

    def _run_metrics(self) -> Iterator[Metric]:
        counts: _Values = {}
        ends: _Values = {}
        for name in records.pipeline_names(self.project):
            for status in _RUN_STATUSES:
                ids = records.run_ids(self.project, name, status)
                counts[name, status] = len(ids)
            when = last_success_time(self.project, name)
            if when is not None:
                ends[name,] = when.timestamp()
        yield _gauge("runs", "Runs on record.", ("pipeline", "status"), counts)
        ended, about = "last_success_timestamp_seconds", "End of the last success."
        yield _gauge(ended, about, ("pipeline",), ends)

    def _stage_metrics(self) -> Iterator[Metric]:
        now = dict(display.current_progress)  # the run goes on meanwhile
        for what, about in display.PROGRESS_METRICS.items():
            at: _Values = {(str(now["stage"]),): now[what]} if what in now else {}
            yield _gauge(f"run_{what}", about, ("stage",), at)

    def _serve_metrics(self) -> Iterator[Metric]:
        beat = health.last_heartbeat(self.project)
        alive = beat is not None and beat.is_alive
        good = alive and beat is not None and not beat.trouble
        yield _gauge("serve_up", "Whether serve lives.", (), {(): alive})
        yield _gauge("serve_scheduling", "Whether schedules fire.", (), {(): good})
        if not self.serving:
            return
        for name, about, label in (
            ("serve_restarts", "Children started again.", "child"),
            ("missed_firings", "Scheduled runs that did not start.", "pipeline"),
        ):
            counter = CounterMetricFamily(f"curvote_{name}", about, labels=[label])
            for (what, label_value), count in dict(self.event_counts).items():
                if what == name:
                    counter.add_metric([label_value], count)
            yield counter

    def _intake_metrics(self) -> Iterator[Metric]:
        from curvote.intake.box import Intake
        from curvote.intake.store import store_exists

        if not store_exists(self.project.intake):
            return
        sums: dict[_Labels, int] = {}
        with Intake(self.project.intake) as intake:
            for round_ in intake.rounds():
                for what in ("issued", "accepted", "needed"):
                    at = round_.pipeline, round_.asks, what
                    sums[at] = sums.get(at, 0) + getattr(round_, what)
        labels, about = ("pipeline", "asks", "what"), "Envelopes of all rounds."
        yield _gauge("intake_envelopes", about, labels, sums)

    def _model_metrics(self) -> Iterator[Metric]:
        """Yield what models are found to be, by the latest run of each pipeline."""
        values: dict[str, _Values] = {name: {} for name in _MODEL_METRICS}
        for name in records.pipeline_names(self.project):
            for run in records.run_ids(self.project, name, "completed", 1):
                for model in _reputations(self.project, run):
                    for what, number in zip(values, model.looks[-1][1:], strict=False):
                        values[what][name, model.figure] = number
                    for kind in model.kinds:
                        values["alarm"][name, kind] = kind in model.alarms
        for what, by_place in values.items():
            labels = "pipeline", "kind" if what == "alarm" else "figure"
            about = f"Of a deployed model, by those it is used on: {what}."
            yield _gauge(f"model_{what}", about, labels, by_place)

    def _ledger_metrics(self) -> Iterator[Metric]:
        """Yield the least remaining budget of any client, by population."""
        from curvote.ledger.book import open_existing

        book = open_existing(self.project.ledger)
        if book is None:
            return
        with book:
            head = book.head()
            # Else all clients are read each time.
            if head != self._remaining_budgets[0]:
                rooms = []
                for name, cap in book.caps().items():
                    worst = book.most_spent_in(name).budget()
                    room = cap.epsilon - worst.epsilon, cap.delta - worst.delta
                    rooms.append((name, *room))
                self._remaining_budgets = head, rooms
        for part, place in (("epsilon", 1), ("delta", 2)):
            remaining: _Values = {}
            for row in self._remaining_budgets[1]:
                remaining[str(row[0]),] = float(row[place])
            about = f"The least {part} that any client of a population has left."
            yield _gauge(f"ledger_room_{part}", about, ("population",), remaining)


@lru_cache  # else all is read each time
def _reputations(project: Project, run: str) -> list[Reputation]:
    record = records.load_record(project, run)
    with suppress(UserError):  # its tables are gone
        if record and record.config.get("mode") == "production":
            from curvote.pipeline.run import results  # and pandas

            return [*results.reputations(project, record).values()]
    return []


def _gauge(
    name: str, about: str, labels: _Labels, values: Mapping[_Labels, float]
) -> Metric:
    gauge = GaugeMetricFamily(f"curvote_{name}", about, labels=labels)
    for at, value in values.items():
        gauge.add_metric(at, float(value))
    return gauge


def serve_metrics(figures: ProjectMetrics, port: int) -> None:
    """Serve the metrics at ``port`` of this machine in a thread.

    UserError: the port cannot be used.
    """
    registry = CollectorRegistry()
    registry.register(figures)
    try:
        server, _ = start_http_server(port, LOOPBACK, registry)
    except OSError as error:
        raise UserError(
            f"Port {port} cannot be used: {error.strerror}. Choose another with"
            " --metrics-port."
        ) from None
    # The page answers under its own address only. A browser that was led here by
    # another name (DNS rebinding) shows that name as Host.
    page: Any = server.get_app()
    hosts = LOOPBACK, "localhost", "[::1]"
    names = {f"{host}:{server.server_port}" for host in hosts}

    def check_host(environ: Mapping[str, str], start: Any) -> Any:
        if environ.get("HTTP_HOST") in names:
            return page(environ, start)
        start("403 Forbidden", [("Content-Type", "text/plain")])
        return [b"This page answers on this machine only.\n"]

    server.set_app(check_host)
