"""What an installation lacks: which extra of curvote brings a missing package."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires

# Where the name that is imported is not that of the distribution.
_DISTRIBUTIONS = {
    "sklearn": "scikit-learn",
    "skfda": "scikit-fda",
    "ruamel": "ruamel-yaml",
    "_ruamel_yaml_clibz": "ruamel-yaml-clib",
}
_HIDDEN = {"_ruamel_yaml_clibz"}  # modules whose own name tells nobody anything
_REQUIRED = re.compile(r"([\w.-]+)(?:\[([\w,]+)\])?.*; extra == [\"'](\w+)[\"']")
_OWN = "curvote"


def cure(error: ModuleNotFoundError, least: str = "") -> str | None:
    """Return how to install what was missed; None: it is of no extra of curvote.

    ``least`` is the extra that whoever missed it goes with; others are named only where
    that one does not bring it.
    """
    module = (error.name or "").partition(".")[0]
    found = least if brings(least, module) else _first(module)
    shown = _DISTRIBUTIONS[module] if module in _HIDDEN else module
    return found and f"{shown} is not installed: pip install 'curvote[{found}]'"


def brings(extra: str, module: str) -> bool:
    """Say whether an extra requires ``module``, itself or by the extras in it."""
    wanted = _normal(_DISTRIBUTIONS.get(module, module))
    return any(
        _normal(name) == wanted
        or (name == _OWN and any(brings(one, module) for one in inner.split(",")))
        for name, inner, of in _required()
        if of == extra
    )


def _first(module: str) -> str | None:
    """Return the first extra that brings a module, as they are declared."""
    return next((of for _, _, of in _required() if brings(of, module)), None)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _required() -> list[tuple[str, str, str]]:
    """Return what the extras require: a name, extras of it, and whose extra it is."""
    try:
        lines = requires(_OWN) or []
    except PackageNotFoundError:  # a checkout that nobody installed
        return []
    found = [_REQUIRED.match(line) for line in lines]
    return [(each[1], each[2] or "", each[3]) for each in found if each]
