"""When the newest messages say that what was made became worse: in words, for a run."""

from __future__ import annotations

from typing import Any

from curvote.chain.axis import Cell
from curvote.chain.lookup import system
from curvote.run.history import RunRecord
from curvote.run.project import Project
from curvote.run.results import views


def fallen(project: Project, record: RunRecord) -> list[str]:
    """Return a line for each cell of a run whose newest batch is worse.

    Only a round that stays open has batches (`intake`); what is worse, the system says.
    """
    return [
        _line(view.cell, facts)
        for view in views(project, record)
        for facts in view.sent_facts()
        if system(view.settings.protocol).alarm(view.settings, facts)
    ]


def _line(cell: Cell, facts: dict[str, Any]) -> str:
    *before, newest = facts["batches"]
    return (
        f"{cell}: the newest {newest} votes find the classifiers worse than the"
        f" {sum(before)} before them (p = {facts['fall']:.1g}); --new-release asks for"
        " new reports and trains anew"
    )
