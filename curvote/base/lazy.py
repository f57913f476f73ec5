"""Lazy imports of packages, and the extras of curvote that bring missing ones."""

import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

# Where the name that is imported is not that of the distribution.
_DISTRIBUTIONS = {
    "sklearn": "scikit-learn",
    "skfda": "scikit-fda",
    "ruamel": "ruamel-yaml",
    "_ruamel_yaml_clibz": "ruamel-yaml-clib",
}
_HIDDEN = {"_ruamel_yaml_clibz"}  # modules whose own name tells nobody anything
_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[([\w,]+)\])?.*; extra == [\"'](\w+)[\"']")
_PROJECT = "curvote"


def install_hint(error: ModuleNotFoundError, preferred: str = "") -> str | None:
    """Return how to install a missing module; None if no extra brings it.

    ``preferred`` is the extra that whoever missed it goes with; others are named only
    where that one does not bring it.
    """
    module = (error.name or "").partition(".")[0]
    extras = (preferred, *(of for _, _, of in _extra_requirements()))
    extra = next((name for name in extras if extra_provides(name, module)), None)
    name = _DISTRIBUTIONS[module] if module in _HIDDEN else module
    return extra and f"{name} is not installed: pip install 'curvote[{extra}]'"


def extra_provides(extra: str, module: str) -> bool:
    """Return whether an extra requires ``module``, directly or not."""
    distribution = _normalise_name(_DISTRIBUTIONS.get(module, module))
    return any(
        _normalise_name(name) == distribution
        or (
            name == _PROJECT
            and any(extra_provides(part, module) for part in inner.split(","))
        )
        for name, inner, owner in _extra_requirements()
        if owner == extra
    )


def _normalise_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _extra_requirements() -> list[tuple[str, str, str]]:
    """Return all requirements of extras: name, inner extras, extra."""
    from importlib.metadata import PackageNotFoundError, requires  # 20 ms

    try:
        lines = requires(_PROJECT) or []
    except PackageNotFoundError:  # a checkout that nobody installed
        return []
    matches = [_REQUIREMENT.match(line) for line in lines]
    return [(match[1], match[2] or "", match[3]) for match in matches if match]


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
            place = modules[name]
            absolute = place.startswith(f"{_PROJECT}.")
            module = import_module(place if absolute else f"{package}.{place}")
            return getattr(module, name)
        except ModuleNotFoundError as error:
            error.msg = install_hint(error, preferred="method") or error.msg
            raise

    def dir_() -> list[str]:
        """Return the exports, submodules and dunder names of a package."""
        present = {
            name
            for name, value in vars(sys.modules[package]).items()
            if name.startswith("__") or isinstance(value, ModuleType)
        }
        return sorted(present | modules.keys())

    vars(sys.modules[package])["__dir__"] = dir_
    return getattr_
