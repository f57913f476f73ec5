"""A stage needs no task of its own: one is made from its name and its side."""

from io import StringIO
from pathlib import Path

import pytest

from curvote.base.errors import UserError
from curvote.chain.lookup import find_system
from curvote.chain.registry import SYSTEMS
from curvote.chain.stage import Stage
from curvote.flows.display import print_spending
from curvote.flows.flow import RunRequest, perform_run
from curvote.pipeline.run.planner import make_plan
from curvote.pipeline.store import records
from curvote.tasks.stages import MAX_HOURS, stage_task
from tests import town


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_stage_has_a_task_of_its_name(name: str) -> None:
    """What leaves clients is tagged as a release, whatever the stage is called."""
    for stage in find_system(name).all_stages:
        task = stage_task(stage)
        assert task.name == stage.name
        assert task.tags <= {"client", "release", "server"}
        assert ("release" in task.tags) == (stage.side == "client -> server")


def test_a_stage_that_no_table_names_has_a_task_too() -> None:
    """A new system says its side; it gets the longest time that any stage gets."""
    tune = Stage("tune", "nowhere", side="server -> servers")
    task = stage_task(tune)
    assert (task.name, task.tags) == ("tune", {"server"})
    assert task.timeout_seconds == 3600 * max(MAX_HOURS.values())
    assert task is stage_task(tune)


def test_the_common_chain_keeps_its_limits() -> None:
    """In seconds; no answer in that time is a failure, not a wait for ever."""
    limits = {n: stage_task(Stage(n, "nowhere")).timeout_seconds for n in MAX_HOURS}
    assert limits["privatize"] == limits["evaluate"] == 7200
    assert limits["train"] == 14400
    assert limits["ingest"] == limits["report"] == 3600


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
