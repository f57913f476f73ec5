"""Lazy imports of packages, and the extras of curvote that bring missing ones."""

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
_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[([\w,]+)\])?.*; extra == [\"'](\w+)[\"']")
_PROJECT = "curvote"


def install_hint(error: ModuleNotFoundError, preferred: str = "") -> str | None:
    """Return how to install a missing module; None if no extra brings it.

    ``preferred`` is the extra that whoever missed it goes with; others are named only
    where that one does not bring it.
    """
    module = (error.name or "").partition(".")[0]
    extra = preferred if extra_provides(preferred, module) else _first_extra(module)
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


def _first_extra(module: str) -> str | None:
    """Return the first declared extra that brings a module."""
    return next(
        (of for _, _, of in _extra_requirements() if extra_provides(of, module)), None
    )


def _normalise_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _extra_requirements() -> list[tuple[str, str, str]]:
    """Return all requirements of extras: name, inner extras, extra."""
    try:
        lines = requires(_PROJECT) or []
    except PackageNotFoundError:  # a checkout that nobody installed
        return []
    matches = [_REQUIREMENT.match(line) for line in lines]
    return [(match[1], match[2] or "", match[3]) for match in matches if match]
