"""Evidence of a reproduction: scores of its runs, as means and by replicate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from curvote.papers.rows import Row
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.settings import labels_by_setting
from curvote.pipeline.run.results import mean_scores, missing_to_none, replicate_scores
from curvote.pipeline.store.records import RunRecord

Labels = Mapping[str | None, Mapping[str, str]]
Refine = Callable[[RunRecord, list[Row], pd.DataFrame], list[Row]]


@dataclass(frozen=True, eq=False)
class Evidence:
    """The score rows of a reproduction's runs, and scores by replicate.

    ``replicates`` has the columns of `curvote.pipeline.run.results.replicate_scores`
    and one for each axis of the pipelines' grids; ``configs`` are the runs'
    configurations, ``project`` is where raw files are found.
    """

    summaries: list[Row]
    replicates: pd.DataFrame
    configs: list[dict[str, Any]] = field(default_factory=list)
    project: Project | None = None


def collect_evidence(
    project: Project,
    records: Iterable[RunRecord],
    refine: Refine = lambda _, rows, __: rows,
) -> Evidence:
    """Return the scores of the completed runs of a reproduction.

    ``refine`` makes a wing's rows of a run's record, its rows of `mean_scores` and its
    single scores. Without runs everything is empty.
    """
    runs = list(records)
    summaries: list[Row] = []
    parts = [pd.DataFrame()]
    for record in runs:
        table = replicate_scores(project, record)
        summaries += refine(record, mean_scores(project, record), table)
        parts.append(add_axes(table, labels_by_setting(record.config)))
    together = pd.concat(parts[1:] or parts, ignore_index=True)
    return Evidence(summaries, together, [record.config for record in runs], project)


def add_axes(table: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """Add a column for each axis of a grid: the label of a row's setting."""
    axes = sorted({axis for axis_labels in labels.values() for axis in axis_labels})
    of_rows = [labels[missing_to_none(setting)] for setting in table["setting"]]
    named: dict[str, Any] = {axis: [of.get(axis) for of in of_rows] for axis in axes}
    return table.assign(**named)
