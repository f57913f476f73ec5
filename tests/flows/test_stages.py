"""A stage needs no task of its own: one is made from its name and its side."""

from __future__ import annotations

import pytest

from curvote.chain.lookup import system
from curvote.chain.registry import SYSTEMS
from curvote.chain.stage import Stage
from curvote.tasks.stages import HOURS, task_of


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_stage_has_a_task_of_its_name(name: str) -> None:
    """What leaves clients is tagged as a release, whatever the stage is called."""
    for stage in system(name).every_stage:
        task = task_of(stage)
        assert task.name == stage.name
        assert task.tags <= {"client", "release", "server"}
        assert ("release" in task.tags) == (stage.side == "client -> server")


def test_a_stage_that_no_table_names_has_a_task_too() -> None:
    """A new system says its side; it gets the longest time that any stage gets."""
    tune = Stage("tune", "nowhere", side="server -> servers")
    task = task_of(tune)
    assert (task.name, task.tags) == ("tune", {"server"})
    assert task.timeout_seconds == 3600 * max(HOURS.values())
    assert task is task_of(tune)


def test_the_common_chain_keeps_its_limits() -> None:
    """In seconds; no answer in that time is a failure, not a wait for ever."""
    limits = {n: task_of(Stage(n, "nowhere")).timeout_seconds for n in HOURS}
    assert limits["privatize"] == limits["evaluate"] == 7200
    assert limits["train"] == 14400
    assert limits["ingest"] == limits["report"] == 3600
