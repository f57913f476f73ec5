"""Counts of releases per row over the fits of an estimator, and clone warnings."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from curvote.base.entropy import RandomState
from curvote.base.errors import UserError
from curvote.base.privacy import Budget

Counts = NDArray[np.int64]

# Fits of clones in this process, by class: searches may fit them in several.
_clone_fits: Counter[str] = Counter()


class ReleaseCounter:
    """An estimator mixin that counts how often ``fit`` released each row.

    ``releases_`` (n,) says of each place how many fits had a row there and released it,
    ``private_`` is False as soon as one of them drew noise that somebody can repeat.
    Rows are told apart by their places alone: nothing of them is kept to know them by.
    """

    random_state: RandomState
    releases_: Counts | None
    private_: bool | None
    spent_: Any

    # What to do in the place of a cross-validation.
    alternative: ClassVar[str] = "Choose on public or simulated data."

    def _record_spending(self, budget: Budget, released: Counts) -> None:
        """Record a fit that spends ``budget`` on the released rows."""
        before: Budget | None = getattr(self, "spent_", None)
        self.spent_ = budget if before is None else before + budget
        self._count_releases(released)

    def _count_releases(self, released: Counts) -> None:
        """Add the releases of each row (n,), 0 or 1, to the counts.

        To be called before anything is drawn; a later failure takes nothing back.
        """
        before = getattr(self, "releases_", None)
        if before is not None:  # the shorter is padded with zeros
            total = np.zeros(max(len(before), len(released)), dtype=np.int64)
            total[: len(before)] += before
            total[: len(released)] += released
            released = total
        self.releases_ = released
        # One fit with known noise is enough to know the record.
        seeded_before = getattr(self, "private_", None) is False
        self.private_ = not seeded_before and self.random_state is None
        self._warn_about_clones()

    def __sklearn_clone__(self) -> Any:
        """Return a clone, which is marked as one and counts anew."""
        clone = super().__sklearn_clone__()  # type: ignore[misc]  # BaseEstimator's
        vars(clone)["_cloned"] = True
        return clone

    def _warn_about_clones(self) -> None:
        """Warn once in a process that fits of clones spend separately."""
        kind = type(self).__name__
        if not vars(self).get("_cloned") or self.random_state is not None:
            return
        _clone_fits[kind] += 1
        if _clone_fits[kind] != 2:
            return
        warnings.warn(
            f"{kind} was cloned and fitted twice: each fit releases its"
            " rows anew, and spent_ of one clone knows nothing of the others. In k"
            " folds a row spends (k - 1) epsilon, in a search over g candidates"
            f" (g (k - 1) + 1) epsilon. {self.alternative} Said once.",
            UserWarning,
            stacklevel=4,
        )


def one_release_each(n: int) -> Counts:
    """Return a count of one release for each of ``n`` rows."""
    return np.ones(n, dtype=np.int64)


def refuse_weights(model: object, keywords: dict[str, Any]) -> None:
    """Refuse a ``sample_weight`` among the extra keywords of a fit."""
    for name, value in keywords.items():
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
