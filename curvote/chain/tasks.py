"""Tasks of whatever system: a document says whose it is, and so in which form."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from curvote.chain.registry import SYSTEMS
from curvote.task import Asked, Task


def read(document: Any) -> Asked:
    """Return the task that a document holds; anything else is a UserError.

    A system whose tasks have a form of their own names it ``TASK`` in its ``messages``.
    """
    name = document.get("protocol") if isinstance(document, dict) else None
    package = SYSTEMS.get(name) if isinstance(name, str) else None
    # Not the system's: a client's process holds no more than it needs.
    messages = import_module(f"{package}.messages") if package else None
    form = getattr(messages, "TASK", Task)
    found: Asked = form.from_json(document)
    return found
