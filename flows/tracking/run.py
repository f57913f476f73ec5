"""Runs in MLflow: a parent for each execution, and a child for each cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from curvote.flows.environment import process_tag
from curvote.flows.tracking.headline import Point
from curvote.flows.tracking.model import installed_version
from curvote.run.history import RunRecord
from curvote.run.project import Project

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

_BATCH_SIZE = 100  # more parameters or tags at once are refused


@dataclass(frozen=True)
class ExperimentLog:
    """The writer of one record into one MLflow experiment."""

    client: MlflowClient
    experiment: str
    project: Project
    record: RunRecord

    @property
    def start(self) -> int:
        """The start of the run in milliseconds since 1970."""
        return _to_milliseconds(self.record.started)

    @property
    def end(self) -> int:
        """The end of the run in milliseconds since 1970."""
        return _to_milliseconds(self.record.finished or self.record.started)

    def open(self, name: str, tags: Mapping[str, str]) -> str:
        """Create an open MLflow run and return its id."""
        mode = self.record.config.get("mode", "study")
        run_tags = {
            "mode": mode,
            # A study's noise comes from its seed, which can remove it again.
            "private": str(mode == "production").lower(),
            "curvote.pid": process_tag(),
            "code_version": installed_version("curvote"),
        }
        run = self.client.create_run(
            self.experiment, self.start, run_tags | dict(tags), name
        )
        return str(run.info.run_id)

    def close(self, run_id: str) -> None:
        """Mark an MLflow run as finished at the record's end."""
        self.client.set_terminated(run_id, "FINISHED", self.end)

    def find(self, tag: str, value: str) -> Run | None:
        """Return the latest finished run that carries a tag."""
        wanted = f"tags.`{tag}` = '{value}' and attributes.status = 'FINISHED'"
        finished = self.client.search_runs(
            [self.experiment],
            wanted,
            max_results=1,
            order_by=["attributes.start_time DESC"],
        )
        return finished[0] if finished else None

    def write(
        self,
        run_id: str,
        points: Iterable[Point],
        params: Mapping[str, str],
        tags: Mapping[str, str],
        model: str | None = None,
    ) -> None:
        """Log metrics (also of the ``model``), parameters and tags."""
        from mlflow.entities import Metric, Param, RunTag

        metrics = [Metric(n, v, self.end, at, model) for n, v, at in points]
        read = [Param(*pair) for pair in params.items()]
        marks = [RunTag(*pair) for pair in tags.items()]
        for start in range(0, max(len(metrics), len(read), len(marks)), _BATCH_SIZE):
            part = slice(start, start + _BATCH_SIZE)
            self.client.log_batch(run_id, metrics[part], read[part], marks[part])


def _to_milliseconds(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp() * 1000)
