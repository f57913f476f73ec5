"""Base classes of mechanisms: claims, domains and the order of checks."""

from __future__ import annotations

import inspect
from fractions import Fraction
from typing import Any

import numpy as np

# Longer arrays, as a prior for each client, say nothing to a reader.
_LONGEST = 8


def format_mechanism(mechanism: object) -> str:
    """Return the call that builds ``mechanism``, as text."""
    parameters = inspect.signature(type(mechanism)).parameters
    arguments = [
        f"{name}={_format_argument(getattr(mechanism, name, ...))}"
        for name in parameters
    ]
    return f"{type(mechanism).__name__}({', '.join(arguments)})"


def _format_argument(value: Any) -> str:
    if isinstance(value, np.ndarray):
        value = value.tolist() if value.size <= _LONGEST else ...
    if isinstance(value, Fraction):
        value = float(value)
    return "..." if value is ... else repr(value)
