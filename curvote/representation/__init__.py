"""What both sides know: basis, projection, rescaling and encoding."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_EXPORTS = {
    "BASES": "basis",
    "Encoded": "encoding",
    "Encoding": "encoding",
    "Projection": "basis",
    "identity": "basis",
    "orthonormal": "basis",
    "projection": "basis",
    "volunteer_constants": "rescale",
}


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_EXPORTS[name]}"), name)
