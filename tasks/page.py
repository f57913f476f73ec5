"""Prefect task that draws the report of a finished run."""

from __future__ import annotations

from typing import Any

from prefect import task

from curvote.run.history import RunRecord
from curvote.tasks.context import TaskContext
from curvote.tasks.perform import TASK_OPTIONS
from curvote.tasks.unsaid import redaction

_PAGE_OPTIONS: dict[str, Any] = TASK_OPTIONS | {"task_run_name": "page"}


@task(name="page", tags=["report"], timeout_seconds=1800, **_PAGE_OPTIONS)
def page(context: TaskContext, record: RunRecord) -> str:
    """Write the HTML report and its figures; return the page's path."""
    from curvote.reporting.report import draw_report

    with redaction():
        return str(draw_report(context.project, record))
