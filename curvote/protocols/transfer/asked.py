"""What an audit looks at: what each server is asked at each level."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from curvote.chain.axis import Settings
from curvote.chain.stage import Facts
from curvote.protocols.transfer import stated
from curvote.transfer.task import Task


def asked(settings: Settings, read: Callable[[str], Facts]) -> Iterator[Task]:
    """Yield the task of each server that adds noise, at each epsilon."""
    public, values = read("project"), settings.model_dump(mode="json")
    for epsilon in settings.epsilon:
        told = stated.spelled(values | {"epsilon": epsilon})["told"]
        every = stated.task(public, told, values)
        for name, level in every.servers.items():
            if level.noised:
                yield every.only(name)
