"""Figures, tables and the one-file HTML report, built from tables only."""

from __future__ import annotations

import importlib
from typing import Any

_EXPORTS = {
    "CurveSample": "data",
    "PageData": "data",
    "score_table": "data",
    "save_figures": "figures",
    "render": "page",
}


def __getattr__(name: str) -> Any:
    """Import an exported name on first use, so that matplotlib stays out of imports."""
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_EXPORTS[name]}"), name)
