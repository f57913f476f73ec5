"""What the runs of a reproduction found: means, and the values of single replicates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from curvote.reproduce.rows import Row
from curvote.run.config.settings import labels_of
from curvote.run.history import RunRecord
from curvote.run.project import Project
from curvote.run.summary import plain, scores, summary

Labels = Mapping[str | None, Mapping[str, str]]
Refine = Callable[[RunRecord, list[Row], pd.DataFrame], list[Row]]


@dataclass(frozen=True, eq=False)
class Evidence:
    """The score rows of the runs, as a wing reads them, and the single scores.

    ``replicates`` has the columns of `curvote.run.summary.scores` and one for each
    axis of the pipelines' grids; ``configs`` are the runs' configurations, ``project``
    is where raw files are found.
    """

    summaries: list[Row]
    replicates: pd.DataFrame
    configs: list[dict[str, Any]] = field(default_factory=list)
    project: Project | None = None


def evidence(
    project: Project,
    records: Iterable[RunRecord],
    refine: Refine = lambda _, rows, __: rows,
) -> Evidence:
    """Return what the completed runs of a reproduction's pipelines found.

    ``refine`` makes a wing's rows of a run's record, its rows of `summary` and its
    single scores. Without runs everything is empty.
    """
    runs = list(records)
    summaries: list[Row] = []
    parts = [pd.DataFrame()]
    for record in runs:
        table = scores(project, record)
        summaries += refine(record, summary(project, record), table)
        parts.append(with_axes(table, labels_of(record.config)))
    together = pd.concat(parts[1:] or parts, ignore_index=True)
    return Evidence(summaries, together, [record.config for record in runs], project)


def with_axes(table: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """Add a column for each axis of a grid: the label of a row's setting."""
    axes = sorted({axis for own in labels.values() for axis in own})
    named: dict[str, Any] = {
        axis: [labels[plain(setting)].get(axis) for setting in table["setting"]]
        for axis in axes
    }
    return table.assign(**named)
