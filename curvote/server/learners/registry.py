"""The learners by name; adding one is one file and one line here."""

from __future__ import annotations

import inspect
from importlib import import_module
from types import ModuleType
from typing import Any

from numpy.typing import ArrayLike

from curvote import validate
from curvote.errors import UserError, did_you_mean
from curvote.server.learners.fits import Fits, checked

LEARNERS = {
    "logistic": "curvote.server.learners.logistic",
    "centroid": "curvote.server.learners.centroid",
    "cg": "curvote.server.learners.cg",
}


def names() -> list[str]:
    """Return the names that ``fit`` knows."""
    return sorted(LEARNERS)


def parameters(name: str) -> list[str]:
    """Return the names of the parameters that learner ``name`` takes."""
    return list(inspect.signature(_module(name).fit).parameters)[2:]


def fit(name: str, reports: ArrayLike, labels: ArrayLike, **params: Any) -> Fits:
    """Fit learner ``name`` to each of B problems of the same size.

    ``reports`` is [B, n, d], finite; ``labels`` is [B, n] in -1/+1. The coefficients
    are finite for every input; ``flagged`` marks the problems where they had to be
    made so. An unknown learner or parameter, another shape or label is a UserError.
    """
    module = _module(name)
    for given in params:
        if given not in parameters(name):
            hint = did_you_mean(given, parameters(name)) if parameters(name) else ""
            raise UserError(f"learner {name} takes no parameter {given!r}.{hint}")
    fits: Fits = module.fit(*checked(reports, labels), **params)
    return fits


def _module(name: str) -> ModuleType:
    return import_module(LEARNERS[validate.one_of(LEARNERS, learner=name)])
