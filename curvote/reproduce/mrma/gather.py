"""What the runs of a reproduction found: means, and the values of single replicates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from curvote.protocols.measures import NONE_PASSED
from curvote.protocols.settings import Representation
from curvote.reproduce.mrma.rows import USEFUL
from curvote.reproduce.rows import Row
from curvote.run.config.settings import labels_of, settings
from curvote.run.config.settings import named as setting_name
from curvote.run.history import RunRecord
from curvote.run.project import Project
from curvote.run.results import plain, scores, summary

Labels = Mapping[str | None, Mapping[str, str]]

# Group 2's slopes point anywhere: nothing can be learnt there.
USEFUL_GROUPS = ("1", "3")
_CELL = ["protocol", "setting", "epsilon", "learner", "method", "metric"]


@dataclass(frozen=True, eq=False)
class Evidence:
    """The score rows of the runs, `useful` ones among them, and the single scores.

    ``replicates`` has the columns of `curvote.run.results.scores` and one for each
    axis of the pipelines' grids; ``configs`` are the runs' configurations.
    """

    summaries: list[Row]
    replicates: pd.DataFrame
    configs: list[dict[str, Any]] = field(default_factory=list)


def evidence(project: Project, records: Iterable[RunRecord]) -> Evidence:
    """Return what the completed runs of a reproduction's pipelines found."""
    runs = list(records)
    summaries: list[Row] = []
    parts = []
    for record in runs:
        labels, table = labels_of(record.config), scores(project, record)
        table = table[~table["metric"].isin([NONE_PASSED.name])]
        found = [*summary(project, record), *useful(record.pipeline, table, labels)]
        stated = _stated(record.config)
        summaries += [
            row | stated[setting_name(row.get("setting", {}))] for row in found
        ]
        parts.append(with_axes(table, labels))
    together = pd.concat(parts, ignore_index=True)
    return Evidence(summaries, together, [record.config for record in runs])


def _stated(config: dict[str, Any]) -> dict[str | None, Row]:
    """Return the rescaling and the size that each setting states, by its name."""
    projects = {
        setting_name(labels): Representation.model_validate(own["project"])
        for labels, own in settings(config)
    }
    return {
        name: {"representation": project.rescale, "d": project.size}
        for name, project in projects.items()
    }


def with_axes(table: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """Add a column for each axis of a grid: the label of a row's setting."""
    axes = sorted({axis for own in labels.values() for axis in own})
    named: dict[str, Any] = {
        axis: [labels[plain(setting)].get(axis) for setting in table["setting"]]
        for axis in axes
    }
    return table.assign(**named)


def useful(pipeline: str, table: pd.DataFrame, labels: Labels) -> Iterator[Row]:
    """Yield a score row for each cell: the mean of the useful groups.

    Groups are averaged in each replicate, so that the se of this mean knows that they
    heard of the same classifiers. Without groups there is no row.
    """
    mine = table[table["group"].isin(USEFUL_GROUPS)]
    for names, cell in mine.groupby(_CELL, dropna=False, sort=False):
        each = _of_replicates(cell)
        se = None if len(each) < 2 else float(each.std(ddof=1) / np.sqrt(len(each)))
        named = dict(zip(_CELL, map(plain, names), strict=True))
        yield named | {
            "pipeline": pipeline,
            "setting": labels[named["setting"]],
            "group": USEFUL,
            "value": float(each.mean()),
            "se": se,
        }


def _of_replicates(cell: pd.DataFrame) -> pd.Series:
    """Return the mean over groups of the mean over their servers, by replicate."""
    groups = cell.groupby(["replicate", "group"])["value"].mean()
    return groups.groupby("replicate").mean()
