"""Systems behind their names, and the tasks that their documents hold."""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.registry import is_place
from curvote.chain.registry import SYSTEMS
from curvote.chain.system import System
from curvote.wire.task import AnyTask, Task


@cache
def find_system(name: str) -> System:
    """Return the system of this name; an unknown one is a UserError."""
    package = SYSTEMS[validate.one_of(SYSTEMS, protocol=name)]
    module = import_module(f"{package}.system")
    members: Sequence[System] = getattr(module, "SYSTEMS", ()) or (module.SYSTEM,)
    return next(member for member in members if member.name == name)


def all_systems() -> tuple[System, ...]:
    """Return all systems, in the order of the registry."""
    return tuple(find_system(name) for name in SYSTEMS)


def names_at_key(key: str) -> list[str]:
    """Return the names that registries allow at a configuration key."""
    stages = (stage for entry in all_systems() for stage in entry.all_stages)
    registries = dict.fromkeys(p for s in stages for p, at in s.plugins if at == key)
    names: dict[str, None] = {}
    for place in registries:
        module, _, table = place.partition(":")
        names |= dict.fromkeys(getattr(import_module(module), table))
    return list(names)


def read_task(document: Any) -> AnyTask:
    """Return the task that a document holds; anything else is a UserError.

    A system whose tasks have a form of their own names it ``TASK`` in its ``messages``.
    """
    name = document.get("protocol") if isinstance(document, dict) else None
    kind = task_class(name) if isinstance(name, str) and name in SYSTEMS else Task
    task: AnyTask = kind.from_json(document)
    if is_place(task.mechanism):
        raise UserError(
            f"the task names code to run, {validate.format_value(task.mechanism)}: a"
            " mechanism is curvote's own, or a plug-in that you installed."
        )
    return task


def task_class(protocol: str) -> Any:
    """Return the class of a system's tasks."""
    # Not the system's module: a client's process holds no more than it needs.
    return getattr(import_module(f"{SYSTEMS[protocol]}.messages"), "TASK", Task)
