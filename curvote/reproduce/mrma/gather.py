"""What the runs of MRMA found besides their scores: useful groups, stated sizes."""

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
from curvote.run.config.settings import labels_of, settings
from curvote.run.config.settings import named as setting_name
from curvote.run.history import RunRecord
from curvote.run.project import Project
from curvote.run.summary import plain

# Group 2's slopes point anywhere: nothing can be learnt there.
USEFUL_GROUPS = ("1", "3")
_CELL = ["protocol", "setting", "epsilon", "learner", "method", "metric"]


def evidence(project: Project, records: Iterable[RunRecord]) -> Evidence:
    """Return what the completed runs of a reproduction's pipelines found.

    Its score rows have the `useful` ones among them, and what each setting states.
    """
    found = gather.evidence(project, records, _refined)
    return replace(found, replicates=_errors(found.replicates))


def _errors(table: pd.DataFrame) -> pd.DataFrame:
    return table[~table["metric"].isin([NONE_PASSED.name])]


def _refined(record: RunRecord, rows: list[Row], table: pd.DataFrame) -> list[Row]:
    table = _errors(table)
    found = [*rows, *useful(record.pipeline, table, labels_of(record.config))]
    stated = _stated(record.config)
    return [row | stated[setting_name(row.get("setting", {}))] for row in found]


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
