"""Encoding of curves into the numbers of a report, and linear classifiers of them.

The formulas are MRMA section 5.1; `scale_to_bounds` takes public bounds and clips,
because bounds taken from the record itself leave [-1, 1] and are not private (item 13).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.errors import UserError

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

RESCALING_CONSTANTS = {
    "tanh": ("centre", "scale"),
    "max_abs": (),
    "min_max": ("lower", "upper"),
}
RESCALING_CONSTANTS |= {"none": (), "standard": ("centre", "scale")}
# Values of these have no bounds: only a mechanism that takes directions hides them.
UNBOUNDED_RESCALINGS = ("none", "standard")


def rescale(
    name: str, c: ArrayLike, constants: Mapping[str, ArrayLike]
) -> tuple[Array, Counts]:
    """Return z (n, d) and the number of clipped values of each client.

    ``constants`` holds exactly what ``RESCALES[name]`` lists, each (d,) or a number.
    ``keep_coefficients`` leaves the coefficients as they are and ``standardise``
    centres and scales them; both stay unbounded, which only protocols that report
    directions can hide.
    """
    validate.one_of(RESCALING_CONSTANTS, rescale=name)
    if set(constants) != set(RESCALING_CONSTANTS[name]):
        wanted = ", ".join(RESCALING_CONSTANTS[name]) or "no constants"
        names = ", ".join(sorted(constants)) or "none"
        raise UserError(f"rescale {name} takes {wanted}; given: {names}.")
    if name == "min_max":
        return scale_to_bounds(c, constants["lower"], constants["upper"])
    z = _UNCLIPPED[name](c, **constants)
    return z, np.zeros(len(z), dtype=np.int64)


def keep_coefficients(c: ArrayLike) -> Array:
    """Return the coefficients (n, d) unchanged."""
    return _check_coefficients(c)


def squash(c: ArrayLike, centre: ArrayLike, scale: ArrayLike) -> Array:
    """Return tanh of (c - centre) / scale for each coordinate."""
    with np.errstate(over="ignore"):  # tanh of an overflow is the right +1 or -1
        return np.asarray(np.tanh(standardise(c, centre, scale)))


def standardise(c: ArrayLike, centre: ArrayLike, scale: ArrayLike) -> Array:
    """Return (c - centre) / scale for each coordinate of ``c`` (n, d)."""
    values = _check_coefficients(c)
    middle = _broadcast_constant(values.shape[1], centre=centre)
    width = _broadcast_constant(values.shape[1], scale=scale)
    if not (width > 0).all():
        i = int(np.flatnonzero(~(width > 0))[0])
        raise UserError(
            f"scale is {width[i]:g} for coordinate {i}; it must be above 0."
        )
    return np.asarray((values - middle) / width)


def divide_by_max(c: ArrayLike) -> Array:
    """Return each record of ``c`` (n, d) divided by its largest magnitude."""
    values = _check_coefficients(c)
    largest = np.abs(values).max(axis=1, keepdims=True, initial=0.0)
    return values / np.where(largest > 0, largest, 1.0)


def scale_to_bounds(
    c: ArrayLike, lower: ArrayLike, upper: ArrayLike
) -> tuple[Array, Counts]:
    """Return ``c`` mapped from [lower, upper] to [-1, 1], and clip counts."""
    values = _check_coefficients(c)
    low = _broadcast_constant(values.shape[1], lower=lower)
    high = _broadcast_constant(values.shape[1], upper=upper)
    with np.errstate(over="ignore"):
        width = high - low
    wrong = ~((width > 0) & (width < np.inf))
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        raise UserError(
            f"lower is {low[i]:g} and upper {high[i]:g} for coordinate {i}; lower must"
            " be below upper, and their distance finite."
        )
    clipped = np.clip(values, low, high)
    z = 2 * ((clipped - low) / width) - 1
    return np.asarray(z), (clipped != values).sum(axis=1, dtype=np.int64)


def data_bounds(c: ArrayLike) -> dict[str, Array]:
    """Return the least and largest values of the data: not private.

    **Not private**, whatever noise follows: studies that repeat a paper only. A
    constant coordinate gets a width of 1.
    """
    values = _check_coefficients(c)
    lower, upper = values.min(axis=0), values.max(axis=0)
    return {"lower": lower, "upper": np.where(upper > lower, upper, lower + 1)}


def volunteer_constants(c: ArrayLike) -> tuple[Array, Array]:
    """Return centre and scale of public records ``c`` (n, d).

    The records must be public: those of volunteers who take no part in anything else.
    """
    values = _check_coefficients(c)
    if len(values) < 2:
        raise UserError(
            f"{len(values)} volunteers; a standard deviation takes at least 2."
        )
    centre, scale = values.mean(axis=0), values.std(axis=0, ddof=1)
    constant = (values == values[0]).all(axis=0) | ~(scale > 0)
    if constant.any():
        raise UserError(
            f"coordinate {int(np.flatnonzero(constant)[0])} is the same for all"
            f" {len(values)} volunteers, so its scale would be 0; take more volunteers"
            " or state centre and scale."
        )
    return centre, scale


def _check_coefficients(c: ArrayLike) -> Array:
    values = validate.finite(coefficients=c)
    if values.ndim != 2:
        raise UserError(f"coefficients have shape {values.shape}; they must be (n, d).")
    return values


_UNCLIPPED: dict[str, Callable[..., Array]] = {
    "none": keep_coefficients,
    "standard": standardise,
    "tanh": squash,
    "max_abs": divide_by_max,
}


def _broadcast_constant(d: int, /, **named: ArrayLike) -> Array:
    ((name, value),) = named.items()
    array = validate.finite(**{name: value})
    if array.shape not in ((), (1,), (d,)):
        raise UserError(
            f"{name} has shape {array.shape}; it must be a number or one for each of"
            f" the {d} coordinates."
        )
    return np.broadcast_to(array, (d,))
