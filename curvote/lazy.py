"""Lazy imports: names of a package that are imported on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from curvote.extras import install_hint


def exports(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of ``package`` for ``{name: module inside it}``.

    ``dir`` of the package lists these names, and none of its helpers.
    """

    def getattr_(name: str) -> Any:
        if name not in modules:
            message = f"module {package!r} has no attribute {name!r}"
            # With these Python itself adds "Did you mean ...?".
            raise AttributeError(message, name=name, obj=sys.modules[package])
        try:
            return getattr(import_module(f"{package}.{modules[name]}"), name)
        except ModuleNotFoundError as error:
            error.msg = install_hint(error, preferred="method") or error.msg
            raise

    vars(sys.modules[package])["__dir__"] = lambda: _public_names(package, modules)
    return getattr_


def _public_names(package: str, modules: Mapping[str, str]) -> list[str]:
    """Return the exports, submodules and dunder names of a package."""
    present = {
        name
        for name, value in vars(sys.modules[package]).items()
        if name.startswith("__") or isinstance(value, ModuleType)
    }
    return sorted(present | modules.keys())
