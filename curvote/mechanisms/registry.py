"""The mechanisms by name; adding one is a module with ``MECHANISM`` and a line here."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from curvote import validate
from curvote.mechanisms.base import Mechanism

MECHANISMS = {
    "laplace": "curvote.mechanisms.laplace",
    "binary_rr": "curvote.mechanisms.binary_rr",
}


def names() -> list[str]:
    """Return the names that ``make`` knows."""
    return list(MECHANISMS)


def make(name: str, *, epsilon: float, **params: Any) -> Mechanism:
    """Build the mechanism ``name`` with ``epsilon`` for one value.

    Unknown names and parameters, and an epsilon that is not finite or below
    ``base.SMALLEST_EPSILON``, are UserErrors.
    """
    path = MECHANISMS[validate.one_of(MECHANISMS, mechanism=name)]
    kind: type[Mechanism] = importlib.import_module(path).MECHANISM
    known = inspect.signature(kind).parameters
    for param in params:
        validate.one_of(known, parameter=param)
    return kind(epsilon=epsilon, **params)
