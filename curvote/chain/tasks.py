"""Tasks of all systems, read in the form that their system declares."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from curvote.chain.registry import SYSTEMS
from curvote.task import AnyTask, Task


def read_task(document: Any) -> AnyTask:
    """Return the task that a document holds; anything else is a UserError.

    A system whose tasks have a form of their own names it ``TASK`` in its ``messages``.
    """
    name = document.get("protocol") if isinstance(document, dict) else None
    package = SYSTEMS.get(name) if isinstance(name, str) else None
    # Not the system's: a client's process holds no more than it needs.
    messages = import_module(f"{package}.messages") if package else None
    form = getattr(messages, "TASK", Task)
    task: AnyTask = form.from_json(document)
    return task
