"""The classes of a task: two or more, in the publisher's words."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.errors import UserError
from curvote.validate import shown


class Classes(tuple[str, ...]):
    """The names of the classes, in the publisher's order."""

    __slots__ = ()

    def __new__(cls, names: Iterable[str]) -> Classes:
        """Take the names; fewer than two, or one of them twice, is a UserError."""
        made = super().__new__(cls, names)
        if len(made) < 2 or len({*made}) < len(made):
            given = ", ".join(map(shown, made)) or "none"
            raise UserError(
                f"the classes are {given}; give two or more, all different."
            )
        return made

    @property
    def two(self) -> tuple[str, str]:
        """The negative and the positive class of a method that tells two apart.

        Further classes are a UserError.
        """
        if len(self) > 2:
            raise UserError(f"{len(self)} classes; only two can be told apart here.")
        return self[0], self[1]


def places(labels: ArrayLike, n_classes: int) -> NDArray[np.int64]:
    """Return labels that are places of classes as whole numbers; others: UserError."""
    given = validate.finite(labels=labels)
    wrong = given[~np.isin(given, np.arange(n_classes))]
    if wrong.size:
        raise UserError(
            f"labels holds {wrong.size} entries that name no class, the first is"
            f" {wrong[0]:g}; the {n_classes} classes are 0 to {n_classes - 1}."
        )
    return given.astype(np.int64)


def signs(labels: ArrayLike) -> NDArray[np.float64]:
    """Return -1 for class 0 and +1 for class 1, as what is binary by nature takes them.

    Anything else, NaN too, is a UserError.
    """
    return np.where(places(labels, 2) == 1, 1.0, -1.0)
