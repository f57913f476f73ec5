"""How a record is written into MLflow: runs with its times, and many values at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from curvote.flows.environment import process_tag
from curvote.flows.tracking.headline import Point
from curvote.flows.tracking.model import version_of
from curvote.run.history import RunRecord
from curvote.run.project import Project

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

_BATCH = 100  # more parameters or tags at once are refused


@dataclass(frozen=True)
class Log:
    """One record on its way into one experiment."""

    client: MlflowClient
    experiment: str
    project: Project
    record: RunRecord

    @property
    def start(self) -> int:
        """Milliseconds since 1970."""
        return _millis(self.record.started)

    @property
    def end(self) -> int:
        """Milliseconds since 1970."""
        return _millis(self.record.finished or self.record.started)

    def open(self, name: str, tags: Mapping[str, str]) -> str:
        """Create a run under way and return its id."""
        mode = self.record.config.get("mode", "study")
        own = {
            "mode": mode,
            # A study's noise comes from its seed, which can remove it again.
            "private": str(mode == "production").lower(),
            "curvote.pid": process_tag(),
            "code_version": version_of("curvote"),
        }
        run = self.client.create_run(
            self.experiment, self.start, own | dict(tags), name
        )
        return str(run.info.run_id)

    def close(self, run_id: str) -> None:
        """Mark a run as finished when the execution was."""
        self.client.set_terminated(run_id, "FINISHED", self.end)

    def find(self, tag: str, value: str) -> Run | None:
        """Return the latest finished run that carries a tag."""
        wanted = f"tags.`{tag}` = '{value}' and attributes.status = 'FINISHED'"
        found = self.client.search_runs(
            [self.experiment],
            wanted,
            max_results=1,
            order_by=["attributes.start_time DESC"],
        )
        return found[0] if found else None

    def write(
        self,
        run_id: str,
        points: Iterable[Point],
        params: Mapping[str, str],
        tags: Mapping[str, str],
        model: str | None = None,
    ) -> None:
        """Log metrics, which are those of the ``model``, too, params and tags."""
        from mlflow.entities import Metric, Param, RunTag

        metrics = [Metric(n, v, self.end, at, model) for n, v, at in points]
        read = [Param(*pair) for pair in params.items()]
        marks = [RunTag(*pair) for pair in tags.items()]
        for start in range(0, max(len(metrics), len(read), len(marks)), _BATCH):
            part = slice(start, start + _BATCH)
            self.client.log_batch(run_id, metrics[part], read[part], marks[part])


def _millis(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp() * 1000)
