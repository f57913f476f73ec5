"""Classifiers from data that reaches the server only through noise its owner added."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_EXPORTS = {
    "Budget": "curvote.privacy",
    "CurveClassifier": "curvote.curve_classifier",
    "InternalError": "curvote.errors",
    "MRMAClassifier": "curvote.estimators",
    "SeededEntropy": "curvote.entropy",
    "SystemEntropy": "curvote.entropy",
    "Task": "curvote.task",
    "UserError": "curvote.errors",
}


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return sorted(_EXPORTS)
