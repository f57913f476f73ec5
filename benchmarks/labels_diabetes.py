"""Diabetes as a table with private labels: accuracy of `auto` and of its families.

Run with ``python -m benchmarks.labels_diabetes [--replicates R] [--source NAME]``. The
778 distinct rows, 600 to learn from; none of curvote's constants was chosen on them.
Zeros that mean missing are numbers, as published, and with ``--centre`` the middle of
the feature. Fails where `auto` is below what a table with few rows should reach.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import as_yaml
from curvote.pipeline.run.execution import execute_step
from curvote.pipeline.run.planner import make_plan
from curvote.pipeline.store.artifacts import artifact

LEAST = {0.5: 72.0, 1.0: 74.5, 2.0: 76.5}
LINEAR = {"name": "likelihood", "columns": "features", "label": "linear"}


def pipeline(learners: list[Any], missing: str) -> dict[str, Any]:
    return {
        "source": {"name": "diabetes", "missing": missing},
        "clients": {"train": 600, "test": 178},
        "protocols": [{"name": "labels"}],
        "learners": learners,
        "epsilon": list(LEAST),
    }


def accuracies(settings: dict[str, Any], replicates: int) -> pd.DataFrame:
    """Return the accuracy in % of each learner, epsilon and replicate."""
    found = []
    with TemporaryDirectory() as name:
        project = Project(Path(name))
        text = as_yaml({"pipelines": {"diabetes": settings}})
        (project.root / "pipelines.yaml").write_text(text)
        configured = PipelinesFile(project).configure_pipeline(
            "diabetes", (), replicates=replicates, seed=None
        )
        for step in make_plan(project, configured, fetch=True).steps:
            execute_step(project, step)
            if step.stage.name == "report":
                scores = artifact(project, "report", step.key).table("scores")
                frame = scores.to_pandas()
                found.append(frame.assign(cell=str(step.cell)))
    return pd.concat(found)
