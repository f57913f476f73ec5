"""Stage privatize where a server's release came by envelope."""

from __future__ import annotations

from curvote.chain.stage import Inputs, Params
from curvote.protocols.stages.collected import facts, one
from curvote.protocols.transfer import stated
from curvote.transfer.task import Task

__all__ = ["facts", "one", "task_of"]


def task_of(inputs: Inputs, params: Params) -> Task:
    """Return the public task of a cell's server."""
    public, server = inputs["project"].metadata, params["server"]
    return stated.build_task(public, {server: params["asked"]}, params)
