"""Where a pipeline's raw file is, fetched only when a run asks for it."""

from __future__ import annotations

from importlib import import_module
from typing import Literal

from curvote.datasets import raw
from curvote.datasets.registry import DATASETS
from curvote.run.project import Project
from curvote.run.schema import Pipeline
from curvote.run.step import Raw


def raw_file(
    project: Project, pipeline: Pipeline, *, fetch: bool
) -> Raw | Literal["absent"] | None:
    """Return the checked raw file of the pipeline's source; None if it is simulated.

    Without ``fetch`` a file that is not here is ``"absent"``; with it, it is fetched.
    """
    name = pipeline.source["name"]
    if import_module(DATASETS[name]).SIMULATED:
        return None
    found = raw.locate(project.root, name, download=fetch)
    if found is None:
        return "absent"
    return Raw(found.sha256, str(found.path), found.origin)
