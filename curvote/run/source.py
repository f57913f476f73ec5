"""Where a pipeline's raw file is, fetched only when a run asks for it."""

from __future__ import annotations

from importlib import import_module
from typing import Literal

from curvote.datasets import raw, sources
from curvote.datasets.registry import DATASETS
from curvote.run.chain import Raw
from curvote.run.project import Project
from curvote.run.schema import Pipeline


def raw_file(
    project: Project, pipeline: Pipeline, *, fetch: bool
) -> Raw | None | Literal["absent"]:
    """Return the checked raw file of the pipeline's source; None where it is simulated.

    Without ``fetch`` a file that is not here is ``"absent"``; with it, it is downloaded.
    """
    name = pipeline.source["name"]
    if import_module(DATASETS[name]).SIMULATED:
        return None
    source = sources.find(name, project.root)
    path = raw.local(project.root, source)
    if path is None and not fetch:
        return "absent"
    found = raw.check(path, source) if path else raw.locate(project.root, name)
    return Raw(found.sha256, str(found.path), found.origin)
