"""Tasks that an audit examines: one for each server at each level."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from curvote.chain.axis import PipelineSettings
from curvote.chain.stage import Metadata
from curvote.protocols.transfer import stated
from curvote.transfer.task import Task


def audit_tasks(
    settings: PipelineSettings, read: Callable[[str], Metadata]
) -> Iterator[Task]:
    """Yield the task of each server that adds noise, at each epsilon."""
    public, values = read("project"), settings.model_dump(mode="json")
    for epsilon in settings.epsilon:
        levels = stated.normalize(values | {"epsilon": epsilon})["told"]
        every = stated.build_task(public, levels, values)
        for name, level in every.servers.items():
            if level.noised:
                yield every.for_server(name)
