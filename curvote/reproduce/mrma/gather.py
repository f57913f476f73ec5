"""Evidence of MRMA's runs beyond scores: useful groups, stated sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from curvote.protocols.measures import NONE_PASSED
from curvote.protocols.settings import Representation
from curvote.reproduce import gather
from curvote.reproduce.gather import Evidence, Labels
from curvote.reproduce.mrma.rows import USEFUL
from curvote.reproduce.rows import Row
from curvote.run.config.settings import expand_settings, labels_by_setting, setting_name
from curvote.run.history import RunRecord
from curvote.run.project import Project
from curvote.run.summary import missing_to_none

# Group 2's slopes point anywhere: nothing can be learnt there.
USEFUL_GROUPS = ("1", "3")
_CELL = ["protocol", "setting", "epsilon", "learner", "method", "metric"]


def mrma_evidence(project: Project, records: Iterable[RunRecord]) -> Evidence:
    """Return what the completed runs of a reproduction's pipelines found.

    Its score rows have the `useful_group_rows` ones among them, and what each setting
    states.
    """
    gathered = gather.collect_evidence(project, records, _refine_rows)
    return replace(gathered, replicates=_error_scores(gathered.replicates))


def _error_scores(table: pd.DataFrame) -> pd.DataFrame:
    return table[~table["metric"].isin([NONE_PASSED.name])]


def _refine_rows(record: RunRecord, rows: list[Row], table: pd.DataFrame) -> list[Row]:
    table = _error_scores(table)
    rows_found = [
        *rows,
        *useful_group_rows(record.pipeline, table, labels_by_setting(record.config)),
    ]
    settings_stated = _stated_settings(record.config)
    return [
        row | settings_stated[setting_name(row.get("setting", {}))]
        for row in rows_found
    ]


def _stated_settings(config: dict[str, Any]) -> dict[str | None, Row]:
    """Return the rescaling and the size that each setting states, by its name."""
    projects = {
        setting_name(labels): Representation.model_validate(section["project"])
        for labels, section in expand_settings(config)
    }
    return {
        name: {"representation": project.rescale, "d": project.size}
        for name, project in projects.items()
    }


def useful_group_rows(
    pipeline: str, table: pd.DataFrame, labels: Labels
) -> Iterator[Row]:
    """Yield a score row for each cell: the mean over the useful groups.

    Groups are averaged in each replicate, so that the se of this mean knows that they
    heard of the same classifiers. Without groups there is no row.
    """
    useful_rows = table[table["group"].isin(USEFUL_GROUPS)]
    for names, cell in useful_rows.groupby(_CELL, dropna=False, sort=False):
        means = _replicate_means(cell)
        se = None if len(means) < 2 else float(means.std(ddof=1) / np.sqrt(len(means)))
        named = dict(zip(_CELL, map(missing_to_none, names), strict=True))
        yield named | {
            "pipeline": pipeline,
            "setting": labels[named["setting"]],
            "group": USEFUL,
            "value": float(means.mean()),
            "se": se,
        }


def _replicate_means(cell: pd.DataFrame) -> pd.Series:
    """Return the mean over groups of the mean over their servers, by replicate."""
    groups = cell.groupby(["replicate", "group"])["value"].mean()
    return groups.groupby("replicate").mean()
