"""More and fewer replicates: what is stored is taken over, and nobody sees it later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from curvote.run.history import RunRecord
from curvote.run.plan.growth import grows
from curvote.run.project import Project
from curvote.run.store.artifacts import artifact
from tests import nhanes_table, plain
from tests.run.test_every_stage import PIPELINES, pipeline_of


def stored(project: Project, record: RunRecord) -> dict[tuple[str, str], Any]:
    """Return what the artifacts of a run hold, by (stage, key)."""
    found = {}
    for step in record.steps:
        told = artifact(project, step["stage"], step["key"]).manifest
        found[step["stage"], step["key"]] = told["tables"], told["facts"]
    return found


@pytest.mark.parametrize("name", PIPELINES)
def test_more_or_fewer_replicates_are_those_from_nothing(
    tmp_path: Path, name: str
) -> None:
    """Of every system: 2 replicates, then 3, and elsewhere 3, then 2.

    Each stage that repeats itself takes over all that is there; every table has the
    same bytes under the same key, and the facts are the same.
    """
    small = pipeline_of(PIPELINES[name])
    one, other = (plain.write(tmp_path / at, tiny=small) for at in ("one", "other"))
    if small["source"]["name"] == "nhanes-2003":
        nhanes_table.write_source(one.root)
        nhanes_table.write_source(other.root)
    few, many = "replicates=2", "replicates=3"
    nothing = {few: plain.run(one, "tiny", few), many: plain.run(other, "tiny", many)}
    known = {few: stored(one, nothing[few]), many: stored(other, nothing[many])}
    for project, wanted in ((one, many), (other, few)):
        made = plain.plan(project, "tiny", wanted).to_run()
        assert {step.earlier.kept for step in made if step.earlier} == {2}
        assert not [step.name for step in made if grows(step) and not step.earlier]
        assert stored(project, plain.run(project, "tiny", wanted)) == known[wanted]
