"""A data set from its name."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from curvote import validate
from curvote.datasets.registry import DATASETS


def module(name: str) -> ModuleType:
    """Return the module of data set ``name``; an unknown name is a UserError."""
    return import_module(DATASETS[validate.one_of(DATASETS, source=name)])
