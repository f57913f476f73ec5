"""Sources of curves: from a published file or a formula to a table of clients."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_EXPORTS = {
    "DATASETS": "registry",
    "RawFile": "raw",
    "Source": "sources",
    "catalogue": "sources",
    "locate": "raw",
}


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_EXPORTS[name]}"), name)
