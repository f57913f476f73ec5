"""Alarms on drift: the newest messages show that the released model became worse."""

from __future__ import annotations

from typing import Any

from curvote.chain.axis import Cell
from curvote.chain.lookup import find_system
from curvote.run.history import RunRecord
from curvote.run.project import Project
from curvote.run.results import final_views


def drift_alerts(project: Project, record: RunRecord) -> list[str]:
    """Return a line for each cell of a run whose newest batch is worse.

    Only a round that stays open has batches (`intake`); what is worse, the system says.
    """
    return [
        _alert_line(view.cell, facts)
        for view in final_views(project, record)
        for facts in view.sent_facts()
        if find_system(view.settings.protocol).needs_new_round(view.settings, facts)
    ]


def _alert_line(cell: Cell, facts: dict[str, Any]) -> str:
    *before, newest = facts["batches"]
    return (
        f"{cell}: the newest {newest} votes find the classifiers worse than the"
        f" {sum(before)} before them (p = {facts['fall']:.1g}); --new-release asks for"
        " new reports and trains anew"
    )
