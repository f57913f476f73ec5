"""Checks of arguments: each names the argument, its value and the rule."""

import math
from collections.abc import Callable, Collection
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base.errors import UserError, did_you_mean

Value = TypeVar("Value")
FloatArray = NDArray[np.float64]
LARGEST_INT64 = 2**63 - 1
LONGEST_VALUE = 60  # characters of a value that an error shows


def format_value(value: object) -> str:
    """Return a value as an error shows it: plain, short, whatever it is."""
    try:
        text = ascii(value)
    except (ValueError, RecursionError):  # Python writes no number of 4300 digits
        return "too large to be shown"
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "..."


def _single_item(named: dict[str, Value]) -> tuple[str, Value]:
    ((name, value),) = named.items()
    return name, value


def positive(**named: float) -> float:
    """Return the value if it is finite and above 0."""
    name, value = _single_item(named)
    try:
        float(value)  # a number that a float holds
        number = not isinstance(value, bool | np.bool_)
    except (OverflowError, TypeError, ValueError):
        number = False
    if not (number and rule_holds(lambda: 0 < value < math.inf)):
        raise UserError(
            f"{name} is {format_value(value)}; it must be a finite number above 0."
        )
    return float(value)


def rule_holds(rule: Callable[[], Any]) -> bool:
    """Return whether a numeric rule holds; other types break any rule."""
    try:
        return bool(rule())
    except (TypeError, ValueError):
        return False


def fraction(**named: float) -> float:
    """Return the value if it lies strictly between 0 and 1."""
    name, value = _single_item(named)
    if not rule_holds(lambda: 0 < value < 1):
        raise UserError(
            f"{name} is {format_value(value)}; it must lie strictly between 0 and 1."
        )
    return float(value)


def minority(**named: float) -> float:
    """Return the value if it is a share in [0, 1/2)."""
    name, value = _single_item(named)
    if not rule_holds(lambda: 0 <= value < 0.5):
        raise UserError(f"{name} is {value!r}; it must be a share in [0, 0.5).")
    return float(value)


def boolean(**named: Any) -> bool:
    """Return the value if it is True or False."""
    name, value = _single_item(named)
    if not isinstance(value, bool | np.bool_):
        raise UserError(f"{name} is {format_value(value)}; it must be True or False.")
    return bool(value)


def at_least(least: int, /, **named: int) -> int:
    """Return the value if it is a whole number from ``least`` to 2^63 - 1."""
    name, value = _single_item(dict[str, Any](named))
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not least <= value <= LARGEST_INT64 or value % 1:
        raise UserError(
            f"{name} is {format_value(value)}; it must be a whole number >= {least}."
        )
    return int(value)


def one_of(allowed: Collection[str], /, **named: str) -> str:
    """Return the value if it is one of the ``allowed`` names."""
    name, value = _single_item(named)
    if value not in allowed:
        original: object = value  # whatever its annotation says
        text = original[:LONGEST_VALUE] if isinstance(original, str) else ""
        hint = did_you_mean(text, allowed)
        raise UserError(f"{name} is {format_value(value)}.{hint}")
    return value


def finite(**named: ArrayLike) -> FloatArray:
    """Return the array as float64 if it holds no NaN and no infinity."""
    name, value = _single_item(named)
    raw_array = np.asarray(value)
    try:
        # "0.5" and 0.5 + 1j would be converted without a word.
        if raw_array.dtype.kind not in "biufO":
            raise TypeError
        array = raw_array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        content = f"{raw_array.dtype} values"
        if raw_array.dtype.kind in "US" and raw_array.size:
            content = f"text, such as {format_value(raw_array.ravel()[0].item())}"
        raise UserError(f"{name} holds {content}; give numbers.") from None
    bad = ~np.isfinite(array)
    if bad.any() and not array.ndim:
        raise UserError(f"{name} is {format_value(value)}; it must be a finite number.")
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        raise UserError(
            f"{name} holds {int(bad.sum())} values that are NaN or infinite, the first"
            f" at index {first}; every value must be finite."
        )
    return array
