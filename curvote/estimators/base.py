"""Base of the scikit-learn classes: bounds, labels, and a rule learnt by both sides."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from curvote.base import privacy, validate
from curvote.base.classes import Classes
from curvote.base.entropy import Entropy, RandomState, random_sources
from curvote.base.errors import UserError
from curvote.base.warning_filters import warn_outside
from curvote.curves.basis import Projection, identity, orthonormal, projection
from curvote.curves.columns import curve_values, refuse_other_grid, refuse_uneven_grid
from curvote.curves.encoding import (
    RESCALING_CONSTANTS,
    Encoded,
    Encoding,
    predict_indices,
)
from curvote.wire.task import Task

Array = NDArray[np.float64]


def split_bounds(bounds: Any) -> tuple[ArrayLike, ArrayLike]:
    """Return (lower, upper) as they were given; anything but two: UserError."""
    try:
        lower, upper = bounds
    except (TypeError, ValueError):
        raise UserError(
            f"bounds is {validate.format_value(bounds)}; give (lower, upper), each a"
            " number or one for each feature."
        ) from None
    return lower, upper


def feature_bounds(bounds: Any, d: int) -> tuple[Array, Array]:
    """Return (lower, upper), each (d,) of finite numbers; else UserError."""
    ends = []
    for end in split_bounds(bounds):
        values = validate.finite(bounds=end)
        if values.shape not in {(), (d,)}:
            raise UserError(
                f"bounds has shape {values.shape}; give a number, or one for each of"
                f" the {d} features."
            )
        ends.append(np.broadcast_to(values, (d,)))
    return ends[0], ends[1]


def increasing_bounds(bounds: Any, d: int) -> tuple[Array, Array]:
    """Return (lower, upper), each (d,), that increase; else UserError."""
    lower, upper = feature_bounds(bounds, d)
    if not np.less(lower, upper).all():
        raise UserError(
            f"bounds is {validate.format_value(bounds)}; each lower end must be below"
            " its upper one."
        )
    return lower, upper


def warn_clipped(
    values: Array, bounds: tuple[Array, Array], names: Sequence[Any], depth: int = 4
) -> None:
    """Warn the holder of ``values`` (n, d), ``depth`` calls up, of what bounds clip."""
    what = (
        "they count as lying on the bounds, so how they differ is lost. State"
        " bounds=(lower, upper), in the units of the data and known without it."
    )
    warn_outside(values, bounds, names, what, depth=depth)


class WithoutProbabilities:
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


Line = tuple[Array, Any]
Places = NDArray[np.int64]

COORDINATES = ("coefficients", "orthonormal")
# What becomes of values far from the centre, and what to do.
_FAR = (
    "more than three scales from the centre, where all values look alike. State centre"
    " and scale, in the units of the coefficients and known without the data."
)
# A tanh is within 0.005 of its end there. Few values beyond harm nobody, and a scale
# that is small by some factor little: only most of them say that constants are wrong.
REACH = 3
MOST = 0.5


class TwoSidedClassifier(
    privacy.ReleaseCounter, WithoutProbabilities, ClassifierMixin, BaseEstimator, ABC
):
    """A linear classifier that a subclass learns by playing clients and server."""

    protocol: ClassVar[str]
    # The rescaling of curves where none is named.
    of_curves: ClassVar[str]
    # Whether more than two classes can be told apart.
    many: ClassVar[bool] = False

    # What a subclass may take as parameters of its own.
    judge: str = "rescaled"
    coordinates: str = "coefficients"

    basis: str | None
    n_basis: int
    order: int
    grid: ArrayLike | None
    epsilon: float
    rescale: str | None
    centre: float | ArrayLike
    scale: float | ArrayLike
    bounds: tuple[float | ArrayLike, float | ArrayLike]
    random_state: RandomState
    grid_: Array | None
    task_: Task
    spent_: privacy.Budget

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.many
        tags.classifier_tags.poor_score = True
        tags.non_deterministic = self.random_state is None
        return tags

    def fit(self, X: Any, y: ArrayLike, **refused: Any) -> Self:
        """Simulate all rounds on X (n, T or n, d) and labels y (n,).

        Each call asks every row again; ``spent_`` says what a row of all of them spent.
        A ``sample_weight`` is a UserError.
        """
        privacy.refuse_weights(self, refused)
        validate.positive(epsilon=self.epsilon)
        X, grid = self._values_and_grid(X)
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        self.classes_, codes = encode_labels(y)
        check_class_count(self.classes_, many=self.many)
        width = X.shape[1]
        rescale = self.rescale or ("min_max" if self.basis is None else self.of_curves)
        onto = self._build_projection(width, grid)
        lower, upper = increasing_bounds(self.bounds, onto.size)
        values = {
            "centre": validate.finite(centre=self.centre),
            "scale": validate.finite(scale=self.scale),
            "lower": lower,
            "upper": upper,
        }
        needed = RESCALING_CONSTANTS.get(rescale, ())
        constants = {name: values[name] for name in needed}
        encoding = Encoding(onto, rescale, constants, self.judge)
        names = Classes(map(str, self.classes_))
        template = Task(encoding, names, self.epsilon, self.protocol, asks="report")
        encoded = encoding.encode(X)
        self._warn_outside(encoding, encoded.coefficients)
        coef, intercept = self._learn(template, encoded, codes)
        self.coef_, self.intercept_ = np.atleast_2d(coef), np.atleast_1d(intercept)
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the scores of each row: (n,) of two classes, else (n, K).

        Of two classes above 0 is ``classes_[1]``, else the largest is the class.
        """
        check_is_fitted(self, "coef_")  # a fit that failed has counted, no more
        X, points = curve_values(X)
        refuse_other_grid(points, self.grid_)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        features = self.task_.encoding.features(X)
        if len(self.coef_) == 1:
            return np.asarray(features @ self.coef_[0] + self.intercept_[0])
        return np.asarray(features @ self.coef_.T + self.intercept_)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted class of each row."""
        places = predict_indices(self.decision_function(X))
        return np.asarray(self.classes_[places])

    def _warn_outside(self, encoding: Encoding, coefficients: Array) -> None:
        """Warn of columns that bounds clip, or that lie far from the stated centre."""
        words = "coefficient {}" if self.basis else "column {}"
        names: Any = [words.format(i) for i in range(encoding.d)]
        if self.basis is None:
            names = getattr(self, "feature_names_in_", names)
        constants = encoding.constants
        if "lower" in constants:
            ends = constants["lower"], constants["upper"]
            warn_clipped(coefficients, ends, names, depth=5)
        elif "scale" in constants:
            centre, reach = constants["centre"], REACH * constants["scale"]
            ends = centre - reach, centre + reach
            warn_outside(coefficients, ends, names, _FAR, max_share=MOST, depth=4)

    def _count_fit(self, n: int) -> tuple[np.random.Generator, Entropy]:
        """Count a fit of ``n`` rows; return its generator and its noise's entropy.

        To be called before anything is drawn; a later failure takes nothing back.
        """
        generator_and_entropy = random_sources(self.random_state)
        self._record_spending(self.task_.budget, privacy.one_release_each(n))
        return generator_and_entropy

    @abstractmethod
    def _learn(self, template: Task, encoded: Encoded, labels: Places) -> Line:
        """Set ``task_`` and return (coef, intercept) for places (n,) of classes."""

    def _build_projection(self, width: int, grid: Array | None) -> Projection:
        coordinates = validate.one_of(COORDINATES, coordinates=self.coordinates)
        self.grid_ = grid
        if self.basis is None:
            return identity(width)
        if grid is None:
            self.grid_ = grid = np.linspace(0, 1, width)
        plain = projection(self.basis, self.n_basis, grid, self.order, "n_basis")
        return orthonormal(plain) if coordinates == "orthonormal" else plain

    def _values_and_grid(self, X: Any) -> tuple[Any, Array | None]:
        """Return the values of X and their grid, as far as it is known."""
        values, grid = curve_values(X, self.grid)
        if self.basis is not None:
            refuse_uneven_grid(X)
        return values, grid


def check_class_count(classes: NDArray[Any], *, many: bool) -> None:
    """Refuse labels of one class, or of more than two unless ``many`` are taken."""
    if len(classes) > 2 and not many:
        raise UserError(
            f"Only binary classification is supported: {len(classes)} classes."
        )
    if len(classes) < 2:
        raise UserError("Classifier can't train when only one class is present.")
