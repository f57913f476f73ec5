"""Rules for the weights of servers, by name: a form brings the module that has them."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from curvote import validate
from curvote.transfer.forms.base import Form
from curvote.transfer.weighing import Fixed

# What a form with several bandwidths calls weights that hold for all queries.
STEADY: Final = ""


def fixed(form: Form, name: str) -> Fixed | None:
    """Return the rule of this name, None if it weighs by query; unknown: UserError."""
    rules = import_module(form.rules)
    known = [*rules.FIXED, *rules.BY_QUERY]
    validate.one_of([each for each in known if each != STEADY], weights=name)
    found: Fixed | None = rules.FIXED.get(name)
    return found


def reading(form: Form, name: str) -> Any:
    """Return the class that reads queries by this rule, one by one.

    A rule whose weights hold for all of them leaves it to `STEADY` to choose the
    bandwidth.
    """
    by_query = import_module(form.rules).BY_QUERY
    return by_query[name if name in by_query else STEADY]
