"""The forms that a release can have: what is summed over the records of a server."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from curvote import validate

if TYPE_CHECKING:
    from curvote.transfer.forms.base import Form

# Names only: a form's own code counts where it is used.
FORMS = {
    "cells": "curvote.transfer.forms.cells:Cells",
    "moments": "curvote.transfer.forms.moments:Moments",
    "kernel": "curvote.transfer.forms.kernel:Kernel",
    "printed": "curvote.transfer.forms.printed:Printed",
    "counts": "curvote.transfer.forms.counts:Counts",
}


def form(name: str) -> Form:
    """Return a form by name; an unknown one is a UserError."""
    place, _, kind = FORMS[validate.one_of(FORMS, release=name)].partition(":")
    made: Form = getattr(import_module(place), kind)()
    return made
