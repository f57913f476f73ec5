"""Task that draws the report of a finished run from its tables."""

from __future__ import annotations

from typing import Any

from prefect import task

from curvote.run.history import RunRecord
from curvote.tasks.context import Context
from curvote.tasks.perform import OPTIONS
from curvote.tasks.unsaid import unsaid

_OPTIONS: dict[str, Any] = OPTIONS | {"task_run_name": "page"}


@task(name="page", tags=["report"], timeout_seconds=1800, **_OPTIONS)
def page(context: Context, record: RunRecord) -> str:
    """Write the HTML report and its figures; return the page's path."""
    from curvote.reporting.report import report

    with unsaid():
        return str(report(context.project, record))
