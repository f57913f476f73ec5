"""Mechanisms made by name."""

import inspect
from typing import Any

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.mechanisms.base import Mechanism
from curvote.mechanisms.registry import MECHANISMS


def names() -> list[str]:
    """Return the names that `make` knows.

    Returns
    -------
    list of str
        Of mechanisms for values, labels and records.

    Examples
    --------
    >>> names()[:3]
    ['laplace', 'duchi', 'duchi_vector']
    """
    return list(MECHANISMS)


def mechanism_class(name: str) -> type[Mechanism]:
    """Return the class of mechanism ``name``; an unknown name is a UserError."""
    loaded: type[Mechanism] = MECHANISMS.load(name)
    return loaded


def make(name: str, *, epsilon: float, **params: Any) -> Mechanism:
    """Build the mechanism ``name``.

    Parameters
    ----------
    name : str
        One of `names`.
    epsilon : float
        Budget for one value; of a mechanism for vectors, for a record. Below 2^-20
        (``base.SMALLEST_EPSILON``) is a UserError, as are unknown or missing
        parameters.
    **params
        The mechanism's own, as ``n_classes``, ``d``, ``delta`` or ``size``.

    Returns
    -------
    Mechanism
        With its exact law, its loss and its draws.

    Examples
    --------
    >>> from curvote import SystemEntropy
    >>> make("k_rr", epsilon=1.0, n_classes=3)
    KRR(epsilon=1.0, n_classes=3)
    >>> laplace = make("laplace", epsilon=1.0)
    >>> noised = laplace.randomize([0.5, -0.5], SystemEntropy())
    >>> print(noised.shape, f"variance {laplace.variance(0.5):.4f}")
    (2,) variance 8.0000
    """
    cls = mechanism_class(name)
    parameters = inspect.signature(cls).parameters
    for param in params:
        validate.one_of(parameters, parameter=param)
    for param, parameter in parameters.items():
        if parameter.default is parameter.empty and param not in {"epsilon", *params}:
            raise UserError(f"mechanism {name} needs {param}.")
    return cls(epsilon=epsilon, **params)
