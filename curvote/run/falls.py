"""When the newest votes say that the classifiers became worse: in words, for a run."""

from __future__ import annotations

from typing import Any

from curvote.run.history import RunRecord
from curvote.run.plan.step import Cell
from curvote.run.project import Project
from curvote.run.store.artifacts import sound
from curvote.server.watch import fell


def fallen(project: Project, record: RunRecord) -> list[str]:
    """Return a line for each cell of a run whose newest batch of votes is worse.

    Only a round that stays open has batches (``intake.online``). The level is that of
    ``online.drop`` standard errors. A study has no lines.
    """
    drop = record.config["online"]["drop"]
    found = (
        (Cell(**cell), sound(project, "evaluate", key).facts)
        for cell, key in record.keys("evaluate")
    )
    return [_line(cell, facts) for cell, facts in found if has_fallen(facts, drop)]


def has_fallen(facts: dict[str, Any], drop: float) -> bool:
    """Say whether a stage that collected votes found the newest ones worse."""
    level = facts.get("fall")
    return level is not None and fell(level, drop)


def _line(cell: Cell, facts: dict[str, Any]) -> str:
    *before, newest = facts["batches"]
    return (
        f"{cell}: the newest {newest} votes find the classifiers worse than the"
        f" {sum(before)} before them (p = {facts['fall']:.1g}); --new-release asks for"
        " new reports and trains anew"
    )
