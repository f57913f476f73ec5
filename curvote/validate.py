"""One-line checks that name the argument, show the value and state the rule."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.errors import UserError, did_you_mean

Value = TypeVar("Value")
FloatArray = NDArray[np.float64]
LARGEST_WHOLE = 2**63 - 1
LONGEST = 60  # characters of a value that an error shows


def shown(value: object) -> str:
    """Return a value as an error shows it: plain, short, whatever it is."""
    try:
        text = ascii(value)
    except (ValueError, RecursionError):  # Python writes no number of 4300 digits
        return "too large to be shown"
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."


def _only(named: dict[str, Value]) -> tuple[str, Value]:
    ((name, value),) = named.items()
    return name, value


def positive(**named: float) -> float:
    """Return the value if ``0 < value < inf``; NaN fails because the rule is asked."""
    name, value = _only(named)
    number = not isinstance(value, bool | np.bool_) and _is_float(value)
    if not (number and holds(lambda: 0 < value < math.inf)):
        raise UserError(
            f"{name} is {shown(value)}; it must be a finite number above 0."
        )
    return float(value)


def holds(rule: Callable[[], Any]) -> bool:
    """Say whether a rule of numbers holds: text, None or a list breaks any."""
    try:
        return bool(rule())
    except (TypeError, ValueError):
        return False


def _is_float(value: float) -> bool:
    """Say whether a float can hold it: Python's whole numbers know no bound."""
    try:
        float(value)
    except (OverflowError, TypeError, ValueError):
        return False
    return True


def fraction(**named: float) -> float:
    """Return the value if it lies strictly between 0 and 1."""
    name, value = _only(named)
    if not holds(lambda: 0 < value < 1):
        raise UserError(
            f"{name} is {shown(value)}; it must lie strictly between 0 and 1."
        )
    return float(value)


def minority(**named: float) -> float:
    """Return the value if it is a share in [0, 1/2)."""
    name, value = _only(named)
    if not holds(lambda: 0 <= value < 0.5):
        raise UserError(f"{name} is {value!r}; it must be a share in [0, 0.5).")
    return float(value)


def truth(**named: Any) -> bool:
    """Return the value if it is True or False."""
    name, value = _only(named)
    if not isinstance(value, bool | np.bool_):
        raise UserError(f"{name} is {shown(value)}; it must be True or False.")
    return bool(value)


def at_least(least: int, /, **named: int) -> int:
    """Return the value if it is a whole number from ``least`` to 2^63 - 1."""
    name, value = _only(dict[str, Any](named))
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not least <= value <= LARGEST_WHOLE or value % 1:
        raise UserError(
            f"{name} is {shown(value)}; it must be a whole number >= {least}."
        )
    return int(value)


def one_of(known: Collection[str], /, **named: str) -> str:
    """Return the value if it is one of the ``known`` names."""
    name, value = _only(named)
    if value not in known:
        raise UserError(f"{name} is {shown(value)}.{_near(value, known)}")
    return value


def _near(value: object, known: Collection[str]) -> str:
    return did_you_mean(value[:LONGEST] if isinstance(value, str) else "", known)


def _numbers(name: str, value: ArrayLike) -> FloatArray:
    given = np.asarray(value)
    try:
        # "0.5" and 0.5 + 1j would be converted without a word.
        if given.dtype.kind not in "biufO":
            raise TypeError
        return given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise UserError(f"{name} holds {_kind(given)}; give numbers.") from None


def _kind(given: NDArray[Any]) -> str:
    if given.dtype.kind in "US" and given.size:
        return f"text, such as {shown(given.ravel()[0].item())}"
    return f"{given.dtype} values"


def finite(**named: ArrayLike) -> FloatArray:
    """Return the array as float64 if it holds no NaN and no infinity."""
    name, value = _only(named)
    array = _numbers(name, value)
    bad = ~np.isfinite(array)
    if bad.any() and not array.ndim:
        raise UserError(f"{name} is {shown(value)}; it must be a finite number.")
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        raise UserError(
            f"{name} holds {int(bad.sum())} values that are NaN or infinite, the first"
            f" at index {first}; every value must be finite."
        )
    return array
