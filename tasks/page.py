"""Task that draws the report of a finished run from its tables."""

from __future__ import annotations

from prefect import task

from curvote.run.history import RunRecord
from tasks.perform import OPTIONS, Context


@task(name="page", tags=["report"], timeout_seconds=1800, **OPTIONS)
def page(context: Context, record: RunRecord, label: str) -> str:
    """Write the HTML report and its figures; return the page's path."""
    from curvote.reporting.report import report

    return str(report(context.project, record))
