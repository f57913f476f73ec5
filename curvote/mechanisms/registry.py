"""The mechanisms by name; adding one is a module with ``MECHANISM`` and a line here."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from curvote import validate
from curvote.errors import UserError
from curvote.mechanisms.base import Mechanism

MECHANISMS = {
    "laplace": "curvote.mechanisms.laplace",
    "duchi": "curvote.mechanisms.duchi",
    "duchi_vector": "curvote.mechanisms.duchi_vector",
    "piecewise": "curvote.mechanisms.piecewise:Piecewise",
    "hybrid": "curvote.mechanisms.hybrid",
    "pm_01": "curvote.mechanisms.piecewise:UnitPiecewise",
    "sw_01": "curvote.mechanisms.square_wave:UnitSquareWave",
    "square_wave": "curvote.mechanisms.square_wave:SquareWave",
    "exponential": "curvote.mechanisms.exponential",
    "binary_rr": "curvote.mechanisms.binary_rr",
    "k_rr": "curvote.mechanisms.k_rr",
    "unary_symmetric": "curvote.mechanisms.unary:UnarySymmetric",
    "unary_optimised": "curvote.mechanisms.unary:UnaryOptimised",
    "unary": "curvote.mechanisms.unary:Unary",
    "subset_selection": "curvote.mechanisms.subset_selection",
    "hadamard": "curvote.mechanisms.hadamard",
    "rr_with_prior": "curvote.mechanisms.rr_with_prior",
    "sampled": "curvote.mechanisms.sampled",
    "privunit": "curvote.mechanisms.privunit",
    "joint_box": "curvote.mechanisms.joint_box",
    "gaussian": "curvote.mechanisms.gaussian",
}


def names() -> list[str]:
    """Return the names that ``make`` knows."""
    return list(MECHANISMS)


def kind(name: str) -> type[Mechanism]:
    """Return the class of mechanism ``name``: its module's ``MECHANISM``, or another.

    A module that holds several is written ``module:Class``. Unknown: UserError.
    """
    path = MECHANISMS[validate.one_of(MECHANISMS, mechanism=name)]
    module, _, cls = path.partition(":")
    found: type[Mechanism] = getattr(
        importlib.import_module(module), cls or "MECHANISM"
    )
    return found


def make(name: str, *, epsilon: float, **params: Any) -> Mechanism:
    """Build the mechanism ``name`` with ``epsilon`` for one value (vectors: a record).

    Unknown names, unknown or missing parameters, and an epsilon that is not finite or
    below ``base.SMALLEST_EPSILON``, are UserErrors.
    """
    cls = kind(name)
    known = inspect.signature(cls).parameters
    for param in params:
        validate.one_of(known, parameter=param)
    for param, fact in known.items():
        if fact.default is fact.empty and param not in {"epsilon", *params}:
            raise UserError(f"{name} needs {param}.")
    return cls(epsilon=epsilon, **params)
