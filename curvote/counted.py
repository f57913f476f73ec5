"""What rows have released over the fits of one object, and what clones hide of it."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.privacy import Budget
from curvote.random_state import RandomState

Counts = NDArray[np.int64]

# Fits of clones in this process, by class: searches may fit them in several.
_fits: Counter[str] = Counter()


class Counted:
    """A scikit-learn class whose ``fit`` releases rows, and counts how often.

    ``releases_`` (n,) says of each place how many fits had a row there and released it,
    ``private_`` is False as soon as one of them drew noise that somebody can repeat.
    Rows are told apart by their places alone: nothing of them is kept to know them by.
    """

    random_state: RandomState
    releases_: Counts | None
    private_: bool | None
    spent_: Any

    # What to do in the place of a cross-validation.
    instead: ClassVar[str] = "Choose on public or simulated data."

    def _spend(self, budget: Budget, released: Counts) -> None:
        """Count a fit that spends ``budget`` on rows; see `_count`."""
        before: Budget | None = getattr(self, "spent_", None)
        self.spent_ = budget if before is None else before + budget
        self._count(released)

    def _count(self, released: Counts) -> None:
        """Count what is released of each row (n,), 0 or 1.

        To be called before anything is drawn; a later failure takes nothing back.
        """
        before = getattr(self, "releases_", None)
        self.releases_ = released if before is None else _sum(before, released)
        # One fit with known noise is enough to know the record.
        known = getattr(self, "private_", None) is False
        self.private_ = not known and self.random_state is None
        self._warn()

    def __sklearn_clone__(self) -> Any:
        """Return a clone, which counts anew and knows that it is one."""
        made = super().__sklearn_clone__()  # type: ignore[misc]  # BaseEstimator's
        vars(made)["_cloned"] = True
        return made

    def _warn(self) -> None:
        """Say once in a process what two fits of clones mean."""
        kind = type(self).__name__
        if not vars(self).get("_cloned") or self.random_state is not None:
            return
        _fits[kind] += 1
        if _fits[kind] != 2:
            return
        warnings.warn(
            f"{kind} was cloned and fitted twice: each fit releases its"
            " rows anew, and spent_ of one clone knows nothing of the others. In k"
            " folds a row spends (k - 1) epsilon, in a search over g candidates"
            f" (g (k - 1) + 1) epsilon. {self.instead} Said once.",
            UserWarning,
            stacklevel=4,
        )


def _sum(one: Counts, other: Counts) -> Counts:
    """Return the sum by place; the shorter one has zeros at its end."""
    total = np.zeros(max(len(one), len(other)), dtype=np.int64)
    total[: len(one)] += one
    total[: len(other)] += other
    return total


def every(n: int) -> Counts:
    """Return one release of each of ``n`` rows."""
    return np.ones(n, dtype=np.int64)


def refuse_weights(model: object, given: dict[str, Any]) -> None:
    """Refuse a ``sample_weight`` among what a fit was given beside its arguments."""
    for name, value in given.items():
        if name != "sample_weight":
            raise TypeError(
                f"{type(model).__name__}.fit() got an unexpected keyword argument"
                f" {name!r}"
            )
        if value is not None:
            raise UserError(
                "sample_weight is refused: each row releases one message at one epsilon"
                " for all. A weight would be a budget of its row's own, or a number its"
                " owner would have to reveal. Leave rows out instead."
            )
