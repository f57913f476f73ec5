"""What an installation lacks: which extra of curvote brings a missing package."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires

# Where the name that is imported is not that of the distribution.
_DISTRIBUTIONS = {"sklearn": "scikit-learn", "skfda": "scikit-fda", "yaml": "pyyaml"}
_REQUIRED = re.compile(r"([\w.-]+).*; extra == [\"'](\w+)[\"']")


def cure(error: ModuleNotFoundError) -> str | None:
    """Return how to install what ``error`` missed; None: it is not an extra's."""
    module = (error.name or "").partition(".")[0]
    extra = extra_of(module)
    if extra is None:
        return None
    return f"{module} is not installed: pip install 'curvote[{extra}]'"


def extra_of(module: str) -> str | None:
    """Return the first extra of curvote that requires ``module``, None if none does."""
    wanted = _normal(_DISTRIBUTIONS.get(module, module))
    for line in _requirements():
        found = _REQUIRED.match(line)
        if found and _normal(found[1]) == wanted:
            return found[2]
    return None


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _requirements() -> list[str]:
    try:
        return requires("curvote") or []
    except PackageNotFoundError:  # a checkout that nobody installed
        return []
