"""The flows know a task for every stage, and the many servers' one submits them all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import SimpleNamespace

import pytest
from curvote.protocols.registry import PROTOCOLS

from curvote.chain.axis import Cell
from curvote.chain.stage import Stage
from curvote.errors import InternalError
from curvote.federation import system as federated
from curvote.run.plan.expand import INGEST, PROJECT
from curvote.run.plan.step import Step

EVERY = (INGEST, PROJECT, *federated.STAGES)


def _step(stage: Stage) -> Step:
    return Step(stage, Cell(), f"key of {stage.name}", {}, {}, (0,))


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_stage_has_a_task_of_its_name(name: str) -> None:
    """The chain finds it in the module of that name."""
    from flows.chain import _task

    for stage in import_module(PROTOCOLS[name]).STAGES:
        assert _task(stage.name).name == stage.name


def test_many_servers_submit_every_stage_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the flow lists is the protocol's chain."""
    from flows import federate

    submitted: list[str] = []
    record = SimpleNamespace(id="the run")
    run = SimpleNamespace(stage=lambda t: submitted.append(t.name), record=record)

    @contextmanager
    def planned(*_asked: object) -> Iterator[object]:
        yield run

    monkeypatch.setattr(federate, "planned", planned)
    assert federate.federate.fn("many", "here") == "the run"
    assert submitted == [stage.name for stage in EVERY]


def test_a_step_without_a_task_is_no_success() -> None:
    """A flow that forgets a stage must not end as if all were done."""
    from flows.stages import Run

    plan = SimpleNamespace(
        steps=[_step(stage) for stage in EVERY], complete=True, blocked=list
    )
    run = Run(plan, SimpleNamespace(id="the run"), SimpleNamespace())
    run.futures.update(
        {step.id: SimpleNamespace(result=str) for step in plan.steps[:-1]}
    )
    with pytest.raises(InternalError, match="no task for report"):
        run.finish()
