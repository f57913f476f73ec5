"""Stage privatize where a server's release came by envelope."""

from __future__ import annotations

from curvote.chain.stage import Inputs, Params
from curvote.protocols.stages.collected import facts, one
from curvote.protocols.transfer import stated
from curvote.transfer.task import Task

__all__ = ["facts", "one", "task_of"]


def task_of(inputs: Inputs, params: Params) -> Task:
    """Return what the server of a cell is asked: all of it is public."""
    public, server = inputs["project"].facts, params["server"]
    return stated.task(public, {server: params["asked"]}, params)
