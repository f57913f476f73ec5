"""Packages whose names are imported on first use, so that a leaf stays cheap."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from curvote.extras import cure


def exports(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of ``package`` for ``{name: module inside it}``.

    ``dir`` of the package lists these names, and none of its helpers.
    """

    def getattr_(name: str) -> Any:
        if name not in modules:
            said = f"module {package!r} has no attribute {name!r}"
            # With these Python itself adds "Did you mean ...?".
            raise AttributeError(said, name=name, obj=sys.modules[package])
        try:
            return getattr(import_module(f"{package}.{modules[name]}"), name)
        except ModuleNotFoundError as error:
            error.msg = cure(error, least="method") or error.msg
            raise

    vars(sys.modules[package])["__dir__"] = lambda: _names(package, modules)
    return getattr_


def _names(package: str, modules: Mapping[str, str]) -> list[str]:
    """Return what a package exports, its modules so far, and what Python put there."""
    own = {
        name
        for name, value in vars(sys.modules[package]).items()
        if name.startswith("__") or isinstance(value, ModuleType)
    }
    return sorted(own | modules.keys())
