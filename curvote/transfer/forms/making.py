"""A form of release from its name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from curvote import validate
from curvote.transfer.forms.registry import FORMS

if TYPE_CHECKING:
    from curvote.transfer.forms.base import Form


def form(name: str) -> Form:
    """Return the form of this name; an unknown one is a UserError."""
    module, _, class_name = FORMS[validate.one_of(FORMS, release=name)].partition(":")
    instance: Form = getattr(import_module(module), class_name)()
    return instance
