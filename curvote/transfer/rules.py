"""Lookup of a form's weight rules by name."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from curvote import validate
from curvote.transfer.forms.base import Form
from curvote.transfer.weighing import FixedRule

# What a form with several bandwidths calls weights that hold for all queries.
STEADY: Final = ""


def fixed_rule(form: Form, name: str) -> FixedRule | None:
    """Return the fixed rule of this name, None if it weighs by query."""
    rules = import_module(form.rules)
    names = [*rules.FIXED, *rules.BY_QUERY]
    validate.one_of(
        [name_of_rule for name_of_rule in names if name_of_rule != STEADY], weights=name
    )
    rule: FixedRule | None = rules.FIXED.get(name)
    return rule


def query_rule(form: Form, name: str) -> Any:
    """Return the class that weighs each query by this rule.

    A rule whose weights hold for all of them leaves it to `STEADY` to choose the
    bandwidth.
    """
    by_query = import_module(form.rules).BY_QUERY
    return by_query[name if name in by_query else STEADY]
