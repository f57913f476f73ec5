"""Scikit-learn classes: both sides of the protocol in memory, no orchestrator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from curvote import validate
from curvote.client.report import Reporter
from curvote.client.vote import decisions, vote
from curvote.entropy import Entropy, SeededEntropy, SystemEntropy
from curvote.errors import UserError
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.representation.basis import (
    Projection,
    identity,
    projection,
    roughness,
)
from curvote.representation.encoding import Encoding
from curvote.representation.rescale import RESCALES
from curvote.server.averaging import average, weights
from curvote.server.reversal import reverse, reversed_utility
from curvote.server.utility import estimate
from curvote.server.weak import draw, fit_problems
from curvote.task import Task

Array = NDArray[np.float64]


class MRMAClassifier(ClassifierMixin, BaseEstimator):
    """Model reversal and averaging under local differential privacy (Qin & Bai 2026).

    `fit` plays both sides: a part of the rows become training clients, who release one
    noised report each; the others are evaluation clients, who release one noised vote
    each on one of ``n_learners`` weak classifiers. Every row spends ``epsilon`` once.

    Parameters
    ----------
    basis : "bspline", "fourier" or None
        None takes the columns of X as d features; otherwise X holds curves on an
        equidistant grid (``grid``, or [0, 1] when not given), or is an FDataGrid.
    n_basis, order
        Number of basis functions d (Fourier: odd), order of B-splines (4 = cubic).
    epsilon : float
        Budget of each row's one release, 0 < epsilon < inf.
    rescale : "tanh", "max_abs" or "min_max"
        How coefficients come into [-1, 1]. None: ``tanh`` with a basis, ``min_max``
        without. ``centre`` and ``scale``, or ``bounds``, are public constants and are
        never taken from X.
    learner, label_share, mechanism, n_learners, n_per_learner, cutoff, when_none_pass
        As in pipelines.yaml. ``train_share`` is the part of rows that report.
    random_state : int or None
        None draws from the operating system. An int makes a study that protects
        nobody: whoever knows the seed can remove the noise.

    Attributes:
    ----------
    classes_, coef_ (1, d), intercept_ (1,), n_features_in_ : as in scikit-learn
    utility_, weight_, reversed_ (B,), none_passed_ : what the votes said
    task_ : the public task description

    Raises `UserError` (a ValueError) for parameters or data that are out of range.
    """

    def __init__(
        self,
        *,
        basis: str | None = None,
        n_basis: int = 5,
        order: int = 4,
        grid: ArrayLike | None = None,
        epsilon: float = 1.0,
        rescale: str | None = None,
        centre: float | ArrayLike = 0.0,
        scale: float | ArrayLike = 1.0,
        bounds: tuple[float | ArrayLike, float | ArrayLike] = (-1.0, 1.0),
        judge: str = "rescaled",
        mechanism: str = "laplace",
        label_share: float | str = "equal",
        learner: str = "centroid",
        n_learners: int = 25,
        n_per_learner: int = 50,
        train_share: float = 1 / 6,
        cutoff: float = 0.8,
        when_none_pass: str = "soft",
        random_state: int | None = None,
    ) -> None:
        self.basis = basis
        self.n_basis = n_basis
        self.order = order
        self.grid = grid
        self.epsilon = epsilon
        self.rescale = rescale
        self.centre = centre
        self.scale = scale
        self.bounds = bounds
        self.judge = judge
        self.mechanism = mechanism
        self.label_share = label_share
        self.learner = learner
        self.n_learners = n_learners
        self.n_per_learner = n_per_learner
        self.train_share = train_share
        self.cutoff = cutoff
        self.when_none_pass = when_none_pass
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        tags.non_deterministic = self.random_state is None
        return tags

    def fit(self, X: Any, y: ArrayLike) -> MRMAClassifier:
        """Simulate both rounds on X (n, T or n, d) and binary labels y (n,)."""
        X, grid = _curves(X, self.grid)
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        _check_two(self.classes_)
        encoding = self._encoding(X.shape[1], grid)
        names = (str(self.classes_[0]), str(self.classes_[1]))
        budget = self.epsilon, self.mechanism, self.label_share
        self.task_ = Task(encoding, names, *budget)
        self._run(encoding, encoding.encode(X), np.where(codes == 1, 1.0, -1.0))
        return self

    def decision_function(self, X: Any) -> Array:
        """Return f(x) for each row: above 0 is ``classes_[1]``."""
        check_is_fitted(self)
        X, _ = _curves(X, self.grid)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        features = self.task_.encoding.features(X)
        return np.asarray(features @ self.coef_[0] + self.intercept_[0])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted class of each row."""
        positive = self.decision_function(X) > 0
        return np.asarray(self.classes_[positive.astype(int)])

    def _encoding(self, width: int, grid: Array | None) -> Encoding:
        points = np.linspace(0, 1, width) if grid is None else grid
        onto: Projection = (
            identity(width)
            if self.basis is None
            else projection(self.basis, self.n_basis, points, order=self.order)
        )
        rescale = self.rescale or ("min_max" if self.basis is None else "tanh")
        lower, upper = self.bounds
        given = {"centre": self.centre, "scale": self.scale}
        given |= {"lower": lower, "upper": upper}
        wanted = RESCALES.get(rescale, ())
        constants = {name: np.asarray(given[name], dtype=float) for name in wanted}
        return Encoding(onto, rescale, constants, self.judge)

    def _run(self, encoding: Encoding, encoded: Any, labels: Array) -> None:
        rng, entropy = _sources(self.random_state)
        order = rng.permutation(len(labels))
        n_train = self._n_train(len(labels))
        train, voters = order[:n_train], order[n_train:]
        noised = Reporter.of(self.task_).release(
            encoded.z[train], labels[train], entropy, entropy
        )
        fits = self._weak(rng, *noised, encoding)
        judge = np.arange(len(voters)) % len(fits.coef)
        features = encoding.judged(encoded)[voters]
        decision = decisions(features, fits.coef, fits.intercept, judge)
        positive = vote(decision, labels[voters], self.epsilon, entropy)
        self._aggregate(fits, judge, positive)

    def _n_train(self, n: int) -> int:
        share = validate.fraction(train_share=self.train_share)
        return min(max(2, round(n * share)), n - 1)

    def _weak(
        self, rng: np.random.Generator, z: Array, labels: Array, encoding: Encoding
    ) -> Any:
        count = validate.at_least(1, n_learners=self.n_learners)
        size = min(validate.at_least(2, n_per_learner=self.n_per_learner), len(z))
        problems = [(z[i], labels[i]) for i in draw(rng, len(z), count, size)]
        basis = encoding.projection
        public = {"gram": basis.gram, "roughness": roughness(basis)}
        return fit_problems(self.learner, problems, **public)

    def _aggregate(
        self, fits: Any, judge: NDArray[np.int64], positive: NDArray[np.bool_]
    ) -> None:
        n = np.bincount(judge, minlength=len(fits.coef))
        right = np.bincount(judge, weights=positive, minlength=len(fits.coef))
        asked = n > 0
        keep = BinaryRR(epsilon=self.epsilon).keep
        flipped = reverse(right[asked], n[asked])
        self.utility_ = estimate(right[asked], n[asked], keep).value
        weight, self.none_passed_ = weights(
            reversed_utility(self.utility_, flipped), self.cutoff, self.when_none_pass
        )
        self.weight_, self.reversed_ = weight, flipped
        turned = np.where(flipped, -weight, weight)
        coef, intercept = average(fits.coef[asked], fits.intercept[asked], turned)
        self.coef_, self.intercept_ = coef[None, :], np.array([intercept])


def _curves(X: Any, grid: ArrayLike | None) -> tuple[Any, Array | None]:
    """Return the matrix of an FDataGrid and its grid; anything else as it is."""
    if hasattr(X, "start_indices"):  # scikit-fda's FDataIrregular
        raise UserError(
            "X is irregular: each curve has grid points of its own. Interpolate the"
            " curves onto one equidistant grid first."
        )
    if hasattr(X, "data_matrix") and hasattr(X, "grid_points"):
        return np.asarray(X.data_matrix)[..., 0], np.asarray(X.grid_points[0])
    return X, None if grid is None else np.asarray(grid, dtype=np.float64)


def _check_two(classes: NDArray[Any]) -> None:
    if len(classes) > 2:
        raise UserError(
            f"Only binary classification is supported: {len(classes)} classes."
        )
    if len(classes) < 2:
        raise UserError("Classifier can't train when only one class is present.")


def _sources(random_state: int | None) -> tuple[np.random.Generator, Entropy]:
    if random_state is None:
        return np.random.default_rng(), SystemEntropy()
    split, noise = np.random.SeedSequence(random_state).spawn(2)
    return np.random.default_rng(split), SeededEntropy(noise)
