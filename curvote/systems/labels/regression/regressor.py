"""Regressor from public features and noised labels, as a scikit-learn class."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from curvote.base import validate
from curvote.base.entropy import Entropy, RandomState, random_sources
from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.base.validate import FloatArray
from curvote.base.warning_filters import warn_outside
from curvote.learning.estimators import PrivateEstimator
from curvote.systems.labels.learners.factory import refuse_many_neighbours
from curvote.systems.labels.learners.records import further_records, training_records
from curvote.systems.labels.regression.targets import (
    AUTO,
    ON_BINS,
    NoisedTargets,
    check_bounds,
    check_numbers,
    check_prior,
    estimate_histogram,
    noise_targets,
    randomizer_name,
    report_labels,
    to_unit_interval,
)

_ALPHAS: Final = np.logspace(-2, 6, 17)
_FOLDS: Final = 5
# Shares of the records that are neighbours, or in a leaf.
_SHARES: Final = (0.005, 0.02, 0.05, 0.15, 0.4)
_TREES: Final = 100
_ANCHORS: Final = 1000
_COLUMNS: Final = 40


def make_regressor(estimator: Any, n: int, seed: int) -> Any:
    """Return an unfitted regressor for ``n`` records.

    ``estimator`` is ``ridge``, ``knn``, ``forest``, ``spectral`` or a scikit-learn
    regressor, which is cloned; anything else is a UserError.
    """
    if isinstance(estimator, str):
        return REGRESSORS[validate.one_of(REGRESSORS, estimator=estimator)](n, seed)
    if not hasattr(estimator, "fit") or isinstance(estimator, type):
        raise UserError(
            f"estimator is {validate.format_value(estimator)}; give one of"
            f" {', '.join(REGRESSORS)}, or a scikit-learn regressor."
        )
    model = clone(estimator)
    refuse_many_neighbours(model, n)
    return model


def _knn_regressor(n: int, _seed: int) -> Any:
    most = n - -(-n // min(_FOLDS, n))  # in the smallest training part
    near = KNeighborsRegressor(n_neighbors=min(most, 5))
    name = "kneighborsregressor__n_neighbors"
    return _grid_search(make_pipeline(StandardScaler(), near), name, n, most)


def _forest_regressor(n: int, seed: int) -> Any:
    trees = RandomForestRegressor(n_estimators=_TREES, random_state=seed)
    return _grid_search(trees, "min_samples_leaf", n, n)


def _spectral_regressor(n: int, seed: int) -> Any:
    from curvote.systems.labels.learners.graph import Spectral

    anchors = min(n, _ANCHORS)
    columns, neighbours = min(_COLUMNS, anchors), min(5, anchors)
    graph = Spectral(columns, anchors, neighbours, random_state=seed)
    return make_pipeline(StandardScaler(), graph, RidgeCV(_ALPHAS))


def _grid_search(model: Any, name: str, n: int, most: int) -> Any:
    """Return a search by the squared error, which noise raises for all alike.

    Among numbers of neighbours or of records in a leaf, 1 to ``most``.
    """
    sizes = sorted({min(most, max(1, round(share * n))) for share in _SHARES})
    return GridSearchCV(
        model, {name: sizes}, scoring="neg_mean_squared_error", cv=min(_FOLDS, n)
    )


REGRESSORS: Final[Mapping[str, Callable[[int, int], Any]]] = {
    "ridge": lambda n, seed: make_pipeline(StandardScaler(), RidgeCV(_ALPHAS)),
    "knn": _knn_regressor,
    "forest": _forest_regressor,
    "spectral": _spectral_regressor,
}


def _number_labels(y: Any, n: int) -> FloatArray:
    """Return numeric labels (n,), one a record; anything else is a UserError."""
    if y is None:
        raise UserError(
            "fit requires y to be passed, but the target y is None; give numbers (n,)"
            " or NoisedTargets."
        )
    labels = np.asarray(y)
    if labels.shape[1:] == (1,):
        labels = column_or_1d(labels, warn=True)
    labels = check_numbers(labels)
    if len(labels) != n:
        raise UserError(f"X has {n} records, and y {len(labels)} labels; each has one.")
    return labels


@dataclass(eq=False, repr=False)
class PrivateLabelRegressor(PrivateEstimator, RegressorMixin, BaseEstimator):
    """Learns a number from public features and one noised label of each record.

    `fit` on plain labels plays the clients: each label is released once, with all of
    ``epsilon``, and only what was released is learnt from. `fit` on `NoisedTargets`
    learns from what others released.

    Parameters
    ----------
    estimator : "ridge", "knn", "forest", "spectral" or a regressor, default="ridge"
        What learns, also a Pipeline. Those by name are tuned on the noised labels:
        noise adds the same to the squared error of all.
    epsilon : float, default=1
        Budget of each label, 2^-20 <= epsilon < inf; features and taking part are
        public.
    bounds : (lower, upper), default=(-1.0, 1.0)
        Public; labels beyond count as lying on them. Never taken from y. Predictions
        are cut to them.
    randomizer : "auto", "piecewise", "hybrid" or "rr_on_bins", default="auto"
        How a label is noised. The first two are unbiased. ``rr_on_bins`` takes bins
        that are optimal for a prior (Ghazi et al. 2022) and stretches its answers until
        they have slope 1 on the label. ``auto`` looks at epsilon only: ``rr_on_bins``
        below 2.9, ``piecewise`` from there on.
    prior : (m,) or None, default=None
        Public shares of m equal cells of the bounds, for ``rr_on_bins``. None asks a
        share of the labels for a noised histogram: all they ever release.
    share : float, default=0.2
        The part of labels, in (0, 1), that the histogram is made of.
    random_state : int, RandomState, Generator or None, default=None
        None draws from the operating system (`SystemEntropy`), whatever numpy's global
        seed is: the only choice where somebody is to be protected. All else is a
        study's seed (`SeededEntropy`): whoever knows it can remove the noise. An int
        gives the same at each fit; numpy's RandomState and Generator are drawn from.

    Attributes
    ----------
    estimator_ : object
        The fitted regressor.
    randomizer_ : str
        The mechanism that noised the labels.
    prior_ : array (m,) or None
        The prior of the bins; None where there are none.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : array
        Their names, where X was a DataFrame.
    spent_ : Budget
        What a label that stood in every fit of this object on plain labels has spent; a
        fit on `NoisedTargets` spends nothing and sets nothing.
    releases_ : array (n,)
        How many of these fits released the label of this place.
    private_ : bool
        False as soon as one of these fits had a ``random_state``.

    Notes
    -----
    A UserError (a ValueError) names parameters or data that are out of range.
    Scikit-learn's searches fit clones on plain labels, each of which draws anew: tune
    on one set of `NoisedTargets` instead.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 4000)[:, None]
    >>> y = 50 + 20 * X[:, 0]
    >>> model = PrivateLabelRegressor(epsilon=2, bounds=(0, 100), random_state=0)
    >>> print(model.fit(X, y).predict([[0.5]]).round(-1), model.spent_)
    [60.] epsilon 2
    """

    alternative = "Draw NoisedTargets once, by noise_targets, and tune on these."

    estimator: Any = "ridge"
    epsilon: float = 1.0
    bounds: tuple[float, float] = (-1.0, 1.0)
    randomizer: str = AUTO
    _: KW_ONLY
    prior: ArrayLike | None = None
    share: float = 0.2
    random_state: RandomState = None

    def fit(self, X: Any, y: ArrayLike | NoisedTargets, **refused: Any) -> Self:
        """Learn from features X (n, d) and labels, or noised labels, (n,).

        Plain labels are noised anew by each call. Noised ones of other bounds, epsilon
        or randomizer than the model's are a UserError, as is a ``sample_weight``.
        """
        self._refuse_weights(refused)
        rng, entropy = random_sources(self.random_state)
        X = training_records(self, X)
        if isinstance(y, NoisedTargets):
            rows, targets = np.arange(len(X)), self._check_targets(y, len(X))
        else:
            labels = _number_labels(y, len(X))
            rows, targets = self._release_labels(labels, rng, entropy)
        self.randomizer_, self.prior_ = targets.randomizer, targets.prior
        learner = make_regressor(self.estimator, len(rows), int(rng.integers(2**31)))
        self.estimator_ = learner.fit(X[rows], targets.decode())
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return the predicted label of each record, (n,), within the bounds."""
        check_is_fitted(self, "estimator_")
        records = further_records(self, X)
        predictions = np.asarray(self.estimator_.predict(records), dtype=np.float64)
        return np.clip(predictions, *check_bounds(self.bounds))

    def _release_labels(
        self, y: FloatArray, rng: np.random.Generator, entropy: Entropy
    ) -> tuple[NDArray[np.int64], NoisedTargets]:
        """Return the rows that release a label to learn from, and their targets.

        Where a prior is needed and not stated, the others are asked for it before.
        """
        epsilon = validate.positive(epsilon=self.epsilon)
        name = randomizer_name(self.randomizer, epsilon)
        bounds, share = check_bounds(self.bounds), validate.fraction(share=self.share)
        prior = None if self.prior is None else check_prior(self.prior)
        advice = (
            "they count as lying on the bounds. State bounds=(lower, upper), in the"
            " units of y and known without it."
        )
        warn_outside(y[:, np.newaxis], bounds, ["y"], advice, depth=4)
        first = 0
        if name == ON_BINS and prior is None:
            first = min(len(y) - 1, max(1, round(share * len(y))))
        # What cannot be learnt is refused before anything is spent.
        if len(y) - first < 2:
            raise UserError(
                f"X has n_samples = {len(y)} records; {first} of them say what the bins"
                " are, and it takes two others to learn."
            )
        make_regressor(self.estimator, len(y) - first, 0)
        self._record_spending(Budget(self.epsilon), len(y))
        rows = np.arange(len(y))
        if first:
            order = rng.permutation(len(y))
            prior_rows, rows = order[:first], np.sort(order[first:])
            prior_labels = to_unit_interval(y[prior_rows], bounds)
            reports = report_labels(prior_labels, self.epsilon, entropy)
            prior = estimate_histogram(reports, self.epsilon)
        arguments = bounds, self.epsilon, name, entropy
        return rows, noise_targets(y[rows], *arguments, prior=prior)

    def _check_targets(self, targets: NoisedTargets, n: int) -> NoisedTargets:
        if len(targets) != n:
            raise UserError(f"there are {len(targets)} noised labels; X has {n} rows.")
        expected = {
            "bounds": check_bounds(self.bounds),
            "epsilon": validate.positive(epsilon=self.epsilon),
        }
        if self.randomizer != AUTO:
            expected["randomizer"] = randomizer_name(self.randomizer, self.epsilon)
        for name, value in expected.items():
            if getattr(targets, name) != value:
                raise UserError(
                    f"{name} of the noised labels is {getattr(targets, name)!r}, of"
                    f" the model {value!r}."
                )
        return targets
