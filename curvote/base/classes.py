"""Class names of a task, and checks of labels against them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import format_value

# Shares are stated to a few digits.
SHARES_ERROR = 0.01


class Classes(tuple[str, ...]):
    """The names of the classes, in the publisher's order."""

    __slots__ = ()

    def __new__(cls, names: Iterable[str]) -> Classes:
        """Take the names; fewer than two, or one of them twice, is a UserError."""
        classes = super().__new__(cls, names)
        if len(classes) < 2 or len({*classes}) < len(classes):
            listed = ", ".join(map(format_value, classes)) or "none"
            raise UserError(
                f"the classes are {listed}; give two or more, all different."
            )
        return classes

    @property
    def two(self) -> tuple[str, str]:
        """The negative and the positive class of a binary task.

        Further classes are a UserError.
        """
        if len(self) > 2:
            raise UserError(f"{len(self)} classes; only two can be told apart here.")
        return self[0], self[1]


def class_indices(labels: ArrayLike, n_classes: int) -> NDArray[np.int64]:
    """Return labels as indices of classes, 0 to ``n_classes`` - 1."""
    values = validate.finite(labels=labels)
    invalid = values[~np.isin(values, np.arange(n_classes))]
    if invalid.size:
        raise UserError(
            f"labels holds {invalid.size} entries that name no class, the first is"
            f" {invalid[0]:g}; the {n_classes} classes are 0 to {n_classes - 1}."
        )
    return values.astype(np.int64)


def class_shares(balance: ArrayLike, n_classes: int) -> tuple[float, ...]:
    """Return the shares of the classes, made to add up to 1 exactly.

    Another number of them, one not above 0 or another sum is a UserError.
    """
    shares = validate.finite(balance=balance)
    right = shares.shape == (n_classes,) and bool((shares > 0).all())
    if not right or abs(float(shares.sum()) - 1) > SHARES_ERROR:
        raise UserError(
            f"balance is {format_value(balance)}; it must be the shares of"
            f" {n_classes} classes in their order, each above 0, adding up to 1."
        )
    return tuple((shares / shares.sum()).tolist())


def class_signs(labels: ArrayLike) -> NDArray[np.float64]:
    """Return -1 for class 0 and +1 for class 1.

    Anything else, NaN too, is a UserError.
    """
    return np.where(class_indices(labels, 2) == 1, 1.0, -1.0)
