"""Rules for the weights of servers, by name: a form brings the module that has them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from curvote import validate
from curvote.transfer.forms.base import Form
from curvote.transfer.weighing import Fixed


def fixed(form: Form, name: str) -> Fixed | None:
    """Return the rule of this name, None if it weighs by query; unknown: UserError."""
    rules = import_module(form.rules)
    validate.one_of([*rules.FIXED, *rules.BY_QUERY], weights=name)
    found: Fixed | None = rules.FIXED.get(name)
    return found


def reading(form: Form, name: str) -> Any:
    """Return the class that weighs by query under this name."""
    return import_module(form.rules).BY_QUERY[name]
