"""What is public before any noise: from volunteers and settings, from no client."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from curvote.data.simulation import simulated
from curvote.messages.roles import split_roles
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.run.planner import make_plan
from curvote.pipeline.store.artifacts import Artifact
from tests import plain


def test_constants_come_from_volunteers_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changing everybody else's curve leaves the public constants as they are."""
    tiny = plain.TINY | {
        "clients": {"public": 10, "train": 60, "vote": 80, "test": 40},
        "project": {
            "basis": "bspline",
            "size": 4,
            "centre": "volunteers",
            "scale": "volunteers",
        },
    }
    real = simulated.generate
    constants = []
    for shift in (0.0, 5.0):

        def shifted(
            generator: np.random.Generator,
            n: int,
            points: int = 100,
            shift: float = shift,
        ) -> object:
            curves, labels = real(generator, n, points)
            roles = split_roles(7, 0, n, tiny["clients"])
            others = np.setdiff1d(np.arange(n), roles["public"])
            curves[others] += shift
            return curves, labels

        monkeypatch.setattr(simulated, "generate", shifted)
        root = tmp_path / str(shift)
        root.mkdir()
        project = plain.write(root, tiny=tiny | {"replicates": 1})
        plain.run(project)
        (path,) = project.clients.glob("project/*")
        constants.append(Artifact(path).columns("constants", (0,))["value"])
    assert np.array_equal(*constants)
    assert constants[0].shape == (2, 4)


def test_public_facts_of_a_pipeline_are_not_computed_from_clients(
    finished: Project,
) -> None:
    """A plan, whose keys steer everything, is the same with and without the tables."""
    configured = PipelinesFile(finished).configure_pipeline("tiny")
    elsewhere = Project(finished.root / "nowhere")
    keys = [
        [step.key for step in make_plan(place, configured).steps]
        for place in (finished, elsewhere)
    ]
    assert keys[0] == keys[1]
