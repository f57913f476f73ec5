"""Base of the scikit-learn classes whose ``fit`` plays people who release something.

What a fit spends and whom it is about, what it refuses and what scikit-learn is told of
it is the same for all of them, and so are records, bounds and labels.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.entropy import RandomState
from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.base.warning_filters import warn_outside
from curvote.curves.columns import refuse_curves

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

# Fits of clones in this process, by class: searches may fit them in several.
_clone_fits: Counter[str] = Counter()


class PrivateEstimator:
    """Mixin of an estimator whose ``fit`` releases rows: it counts how often.

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
    # Whether more than two classes can be told apart.
    many: Any = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]  # BaseEstimator's
        tags.non_deterministic = self.random_state is None
        if tags.classifier_tags:
            tags.classifier_tags.multi_class = self.many
        (tags.classifier_tags or tags.regressor_tags).poor_score = True
        return tags

    def __sklearn_clone__(self) -> Any:
        """Return a clone, which is marked as one and counts anew."""
        clone = super().__sklearn_clone__()  # type: ignore[misc]  # BaseEstimator's
        vars(clone)["_cloned"] = True
        return clone

    def _refuse_weights(self, keywords: dict[str, Any]) -> None:
        """Refuse a ``sample_weight`` among the extra keywords of a fit."""
        for name, value in keywords.items():
            if name != "sample_weight":
                raise TypeError(
                    f"{type(self).__name__}.fit() got an unexpected keyword argument"
                    f" {name!r}"
                )
            if value is not None:
                raise UserError(
                    "sample_weight is refused: each row releases one message at one"
                    " epsilon for all. A weight would be a budget of its row's own, or"
                    " a number its owner would have to reveal. Leave rows out instead."
                )

    def _record_spending(self, budget: Budget, n: int) -> None:
        """Record a fit that spends ``budget`` on ``n`` rows, each released once."""
        before: Budget | None = getattr(self, "spent_", None)
        self.spent_ = budget if before is None else before + budget
        self._count_releases(np.ones(n, dtype=np.int64))

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
        if vars(self).get("_cloned") and self.random_state is None:
            self._warn_about_clones()

    def _warn_about_clones(self) -> None:
        """Warn once in a process that fits of clones spend separately."""
        kind = type(self).__name__
        _clone_fits[kind] += 1
        if _clone_fits[kind] != 2:
            return
        warnings.warn(
            f"{kind} was cloned and fitted twice: each fit releases its"
            " rows anew, and spent_ of one clone knows nothing of the others. Where"
            " rows are cut into k parts a row spends (k - 1) epsilon, in a search over"
            f" g candidates (g (k - 1) + 1) epsilon. {self.alternative} Said once.",
            UserWarning,
            stacklevel=4,
        )


def numeric_records(model: Any, X: Any, *y: Any, **checks: Any) -> Any:
    """Return X (n, d) of finite numbers, with labels ``y`` if given: (X, y).

    Curves are a UserError, anything else that is no such table scikit-learn's error;
    ``checks`` are those of `validate_data`, which keeps the columns of ``model``.
    """
    from sklearn.utils.validation import validate_data

    refuse_curves(X)
    return validate_data(model, X, *y, dtype=np.float64, **checks)


def check_class_count(classes: NDArray[Any], *, many: bool = True) -> None:
    """Refuse labels of one class, or of more than two unless ``many`` are taken."""
    if len(classes) > 2 and not many:
        raise UserError(
            f"Only binary classification is supported: {len(classes)} classes."
        )
    if len(classes) < 2:
        raise UserError("Classifier can't train when only one class is present.")


def feature_bounds(bounds: Any, d: int) -> tuple[Array, Array]:
    """Return (lower, upper), each (d,) of finite numbers; else UserError."""
    try:
        lower, upper = bounds
    except (TypeError, ValueError):
        raise UserError(
            f"bounds is {validate.format_value(bounds)}; give (lower, upper), each a"
            " number or one for each feature."
        ) from None
    ends = []
    for end in (lower, upper):
        values = validate.finite(bounds=end)
        if values.shape not in {(), (d,)}:
            raise UserError(
                f"bounds has shape {values.shape}; give a number, or one for each of"
                f" the {d} features."
            )
        ends.append(np.broadcast_to(values, (d,)))
    return ends[0], ends[1]


def warn_clipped(
    values: Array, bounds: tuple[Array, Array], names: Sequence[Any], depth: int = 4
) -> None:
    """Warn the holder of ``values`` (n, d), ``depth`` calls up, of what bounds clip."""
    what = (
        "they count as lying on the bounds, so how they differ is lost. State"
        " bounds=(lower, upper), in the units of the data and known without it."
    )
    warn_outside(values, bounds, names, what, depth=depth)


class WithoutProbabilities(PrivateEstimator):
    """A classifier whose scores are no probabilities, and that says why."""

    @property
    def predict_proba(self) -> Any:
        """Refuse: no probability read from noised reports is calibrated."""
        raise AttributeError(
            "predict_proba is absent: scores are read from noised reports, whose noise"
            " makes them no calibrated probabilities. Use predict or decision_function."
        )


def encode_labels(y: ArrayLike) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the classes in sorted order (K,), and the place of each label (n,)."""
    from sklearn.utils.multiclass import check_classification_targets

    try:
        check_classification_targets(y)
        classes, places = np.unique(y, return_inverse=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in np.asarray(y).ravel()})
        raise UserError(
            f"y mixes labels of the kinds {', '.join(kinds)}; give one kind, and leave"
            " out rows without a label."
        ) from None
    return classes, places
