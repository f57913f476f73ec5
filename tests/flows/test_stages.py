"""A stage needs no task of its own: one is made from its name and its side."""

from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from curvote.base.errors import UserError
from curvote.chain.axis import Cell
from curvote.chain.lookup import find_system
from curvote.chain.registry import SYSTEMS
from curvote.flows.chain import RunRequest, perform_run
from curvote.flows.display import print_spending
from curvote.pipeline.plan.step import Step
from curvote.pipeline.run.planner import make_plan
from curvote.pipeline.store import records
from curvote.tasks.stages import stage_task, step_tags
from tests import town


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_stage_has_a_task_of_its_name(name: str) -> None:
    """Without tags or a timeout: of both Prefect warns, and nobody could act on it.

    A task run is tagged with stage, side and cell; what leaves clients is a release,
    whatever the stage is called.
    """
    for stage in find_system(name).all_stages:
        task = stage_task(stage.name)
        assert (task.name, task.tags, task.timeout_seconds) == (stage.name, set(), None)
        step = cast("Step", SimpleNamespace(stage=stage, cell=Cell((("epsilon", 1),))))
        side, *more = step_tags(step, with_cell=True)
        assert more == [f"stage={stage.name}", "epsilon=1"]
        assert [side] == step_tags(step, with_cell=False)
        assert (side == "side=release") == (stage.side == "client -> server")


def test_the_first_release_about_people_is_agreed_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who spends how much is said before; a terminal is asked, a schedule is not."""
    project = town.write(tmp_path)
    town.export(tmp_path, str)
    nobody = StringIO("n\n")
    monkeypatch.setattr(nobody, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", nobody)
    with pytest.raises(UserError, match="not agreed to"):
        perform_run(town.NAME, str(tmp_path), RunRequest(ask=True))
    assert not project.ledger.exists()
    assert not records.load_records(project)
    plan = town.run(project)
    capsys.readouterr()
    assert not print_spending(project, plan)  # all is released by now, and reused
    again = make_plan(project, plan.configured, new_release=True)
    assert not print_spending(project, again)  # the second time nobody is asked
    said = capsys.readouterr().err
    assert "spent so far, at most: epsilon 8" in said
    assert "privatize: epsilon 8 of 60 each (training client)" in said
    assert "evaluate: epsilon 8 of 80 each (evaluation client)" in said
