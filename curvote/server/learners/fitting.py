"""Registry of learners: fits and parameters of learners by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from curvote import validate
from curvote.errors import UserError, did_you_mean
from curvote.server.learners.fits import Fits, check_problems
from curvote.server.learners.registry import FAMILIES, LEARNERS

TRIAL_REPORTS = np.array([[[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]]])


def names() -> list[str]:
    """Return the names that ``fit`` knows, without families such as ``sklearn:``."""
    return sorted(set(LEARNERS) - set(FAMILIES))


def parameters(name: str) -> list[str]:
    """Return the names of the parameters that learner ``name`` takes."""
    function, path = _find_learner(name)
    if path:
        names: list[str] = import_module(function.__module__).parameters(**path)
        return names
    return list(inspect.signature(function).parameters)[2:]


def fit(name: str, reports: ArrayLike, labels: ArrayLike, **params: Any) -> Fits:
    """Fit learner ``name`` to each of B problems of the same size.

    ``reports`` is [B, n, d], finite; ``labels`` is [B, n] in -1/+1. The coefficients
    are finite for every input; ``flagged`` marks the problems where they had to be
    made so. An unknown learner or parameter, another shape or label is a UserError.
    """
    function, path = _find_learner(name)
    allowed = parameters(name)
    for param in params:
        if param not in allowed:
            hint = did_you_mean(param, allowed) if allowed else ""
            raise UserError(f"learner {name} takes no parameter {param!r}.{hint}")
    return function(*check_problems(reports, labels), **path, **params)


def check(name: str, params: Mapping[str, Any]) -> None:
    """Raise a UserError unless learner ``name`` can work with ``params``.

    It is tried out on four points, so wrong values are found as well as wrong names.
    """
    try:
        fit(name, TRIAL_REPORTS, [[-1, -1, 1, 1]], **params)
    except TypeError as error:
        raise UserError(f"learner {name} cannot work: {error}.") from error


def _find_learner(name: str) -> tuple[Callable[..., Fits], dict[str, str]]:
    """Return the function that fits and, for a member of a family, its path."""
    family, colon, path = str(name).partition(":")
    if colon and family not in FAMILIES:
        raise UserError(f"learner is {name!r}; only {', '.join(FAMILIES)} take a path.")
    validate.one_of(LEARNERS, learner=family)
    if family in FAMILIES and not path:
        raise UserError(
            f"learner is {name!r}; say which, as in {family}:{FAMILIES[family]}."
        )
    module, _, function = LEARNERS[family].partition(":")
    fitting: Callable[..., Fits] = getattr(import_module(module), function or "fit")
    return fitting, {"path": path} if colon else {}
