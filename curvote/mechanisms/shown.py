"""How a mechanism is written: its class, with what it was built from."""

from __future__ import annotations

import inspect
from fractions import Fraction
from typing import Any

import numpy as np

# Longer arrays, as a prior for each client, say nothing to a reader.
_LONGEST = 8


def shown(mechanism: object) -> str:
    """Return the call that builds ``mechanism``; what it did not keep is ``...``."""
    known = inspect.signature(type(mechanism)).parameters
    said = [f"{name}={_value(getattr(mechanism, name, ...))}" for name in known]
    return f"{type(mechanism).__name__}({', '.join(said)})"


def _value(value: Any) -> str:
    if isinstance(value, np.ndarray):
        value = value.tolist() if value.size <= _LONGEST else ...
    if isinstance(value, Fraction):
        value = float(value)
    return "..." if value is ... else repr(value)
