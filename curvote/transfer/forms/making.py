"""A form of release from its name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from curvote import validate
from curvote.transfer.forms.registry import FORMS

if TYPE_CHECKING:
    from curvote.transfer.forms.base import Form


def form(name: str) -> Form:
    """Return a form by name; an unknown one is a UserError."""
    place, _, kind = FORMS[validate.one_of(FORMS, release=name)].partition(":")
    made: Form = getattr(import_module(place), kind)()
    return made
