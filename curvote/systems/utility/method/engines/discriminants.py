"""Engines of scores, linear or quadratic: exact for two values, else a bracket."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import InternalError
from curvote.base.validate import FloatArray
from curvote.mechanisms.base import Law, Mixture
from curvote.systems.utility.method.engines import base
from curvote.systems.utility.method.engines.base import Channel
from curvote.systems.utility.method.engines.black_box import draw_answers
from curvote.systems.utility.method.engines.scores import (
    Scores,
    ValueLaw,
    bracket_positive,
    class_wins,
    shares_of_two,
    winning_shares,
)

# Records at once, and sensitive values of theirs: what the processor's cache holds.
FEW_RECORDS, VALUES = 16, 256
# An atom that lacks no more of all the mass is all of it: rounding.
CERTAIN_MASS = 1e-12

Shares = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class ScoreSurface(base.Surface):
    """Surface of class scores; the model is asked only to draw."""

    question: base.Question
    scores: Scores

    def answers(self, channel: Channel, draws: base.Draws) -> base.Answers:
        """Return the shares of the classes from the channel's law.

        Exact (to `quadrature.TOLERANCE`) where at most two values that matter are
        noised; a certain bracket where more are; drawn where the channel has no law.
        """
        if channel.law(self.question.values[:1]) is None:
            return draw_answers(self, self.question, channel, draws)
        size, parts = max(FEW_RECORDS, VALUES // max(self.scores.s, 1)), []
        for start in range(0, len(self.clean), size):
            rows = slice(start, start + size)
            law = channel.law(self.question.values[rows])
            if law is None:
                why = "a channel that had a law has none for other records"
                raise InternalError(why)
            parts.append(mixture_shares(self.scores.of(rows), law))
        low, high = (np.vstack(side) for side in zip(*parts, strict=True))
        evidence: base.Evidence = "exact" if (low == high).all() else "bracket"
        none = np.zeros(len(low), dtype=np.int64)
        return base.Answers((low + high) / 2, low, high, evidence, none)

    def holds(self, low: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
        """Return whether the clean class wins in each record's whole box."""
        return class_wins(self.scores, self.clean, low, high)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the clean answers and the scores."""
        return {"clean": self.clean, **vars(self.scores)}


def mixture_shares(scores: Scores, law: Mixture) -> Shares:
    """Return lower and upper shares of the classes, (n, K), for laws of values."""
    low, high = np.zeros((2, *scores.constant.shape))
    for weight, term in zip(law.weights.T, law.terms, strict=True):
        below, above = _term_shares(scores, term)
        low += weight[:, None] * below
        high += weight[:, None] * above
    return low, high


def _term_shares(scores: Scores, term: tuple[Law, ...]) -> Shares:
    values, fixed = np.zeros((len(scores.constant), len(term))), []
    for i, law in enumerate(term):
        masses = law.masses
        if masses.shape[1] and (masses.max(axis=1) > 1 - CERTAIN_MASS).all():
            # The value (n,) is the same in every draw.
            where = masses.argmax(axis=1)[:, None]
            values[:, i] = np.take_along_axis(law.points, where, axis=1)[:, 0]
            fixed.append(i)
    free = [i for i in scores.active_values() if i not in fixed]
    free_scores, laws = scores.fix_values(values, free), tuple(term[i] for i in free)
    match laws:
        case ():
            won = np.eye(scores.classes)[np.argmax(free_scores.constant, axis=1)]
        case (law,):
            along = free_scores.alone()
            won = winning_shares(along, ValueLaw.with_atoms(law))[:, 0]
        case (first, second):
            won = shares_of_two(free_scores, (first, second))
        case _:
            lead = np.diff(free_scores.constant)[:, 0]
            slopes = np.diff(free_scores.linear)[0, :, 0]
            low, high = bracket_positive(lead, slopes, laws)
            return np.stack([1 - high, low], axis=1), np.stack([1 - low, high], axis=1)
    return won, won


# Questions that check a model against its scores.
PROBES = 1000
# Answers may differ where the lead is so small a share of the scores: rounding.
CLOSE_LEAD = 1e-9


class ScoreEngine(base.Engine):
    """Engine for estimators that answer the class of the largest score."""

    unlike: ClassVar[str]

    @abstractmethod
    def read(self, estimator: Any) -> LinearScores | Gaussians | None:
        """Return the estimator's scores of its features, None if it has none."""

    @abstractmethod
    def limit(self, classes: int, noised: int) -> str | None:
        """Return why so many classes and noised features are too many, or None."""

    def scores(self, question: base.Question) -> Scores | str:
        """Return the scores around the records, or why there are none."""
        estimator, front = base.split_front(question)
        form = self.read(estimator)
        if form is None:
            return f"{type(estimator).__name__} is {self.unlike}."
        if isinstance(front, str):
            return front
        scores = form.scores(question, front)
        return self.limit(scores.classes, len(scores.active_values())) or scores

    def refusal(self, question: base.Question) -> str | None:
        """Return why the model is not read so, or None, after `PROBES`."""
        scores = self.scores(question)
        if isinstance(scores, str):
            return scores
        which = np.arange(PROBES) % len(question.records)
        rows = question.records[which].copy()
        shape = PROBES, len(question.sensitive)
        low, high = question.bounds.T
        values = low + (high - low) * np.random.default_rng(0).random(shape)
        rows[:, list(question.sensitive)] = values
        answers = base.predict_indices(question.model, rows, scores.classes)
        at = scores.of(which).at(values)
        ordered = np.sort(at, axis=1)
        lead, size = ordered[:, -1] - ordered[:, -2], np.abs(ordered).max(axis=1)
        clear = lead > CLOSE_LEAD * size
        if bool((answers != np.argmax(at, axis=1))[clear].any()):
            name = type(base.split_front(question)[0]).__name__
            return f"{name} answers otherwise than the largest of its scores."
        return None

    def surface(self, question: base.Question) -> base.Surface:
        """Return the surface of the scores; a model without: UserError."""
        scores = base.require(self.scores(question))
        model, records = question.model, question.records
        clean = base.predict_indices(model, records, scores.classes)
        return ScoreSurface(clean, scores.classes, question, scores)

    def restored(
        self, question: base.Question, arrays: dict[str, NDArray[Any]]
    ) -> base.Surface:
        """Return the surface built again from its ``arrays``."""
        stored = {name: arrays[name] for name in ("constant", "linear", "square")}
        scores = Scores(**stored)
        return ScoreSurface(arrays["clean"], scores.classes, question, scores)


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Two classes by weights (d,) and an intercept: the second iff the score > 0.

    For classifiers that are no scikit-learn estimators: curves' coefficients, say.
    """

    weights: FloatArray
    intercept: float
    classes: tuple[Any, Any] = (0, 1)

    @property
    def classes_(self) -> NDArray[Any]:
        """The two classes, as given."""
        return np.asarray(self.classes)

    @property
    def coef_(self) -> FloatArray:
        """The weights, (1, d)."""
        return np.asarray(self.weights, dtype=np.float64)[None]

    @property
    def intercept_(self) -> FloatArray:
        """The intercept, (1,)."""
        return np.array([self.intercept], dtype=np.float64)

    def decision_function(self, X: FloatArray) -> FloatArray:
        """Return the score of each row, (n,)."""
        return np.asarray(X @ self.coef_[0] + self.intercept)

    def predict(self, X: FloatArray) -> NDArray[Any]:
        """Return the class of each row, (n,)."""
        positive = self.decision_function(X) > 0
        return np.asarray(self.classes_[positive.astype(int)])


@dataclass(frozen=True)
class LinearScores:
    """Linear scores: features @ ``weights`` (D', K) + ``constants`` (K,)."""

    weights: FloatArray
    constants: FloatArray

    def scores(self, question: base.Question, front: base.Front) -> Scores:
        """Return the scores as functions of the sensitive values."""
        slopes = front.slopes @ self.weights
        at_records = front.features(question.records) @ self.weights + self.constants
        constant = at_records - question.values @ slopes
        square = np.zeros((len(slopes), *slopes.shape))
        return Scores(constant, slopes[None], square)


_WEIGHT_ATTRIBUTES = ("coef_", "intercept_", "classes_", "decision_function")


def read_linear(estimator: Any) -> LinearScores | None:
    """Return the estimator's linear scores, None if it has none."""
    lines = None
    if all(hasattr(estimator, name) for name in _WEIGHT_ATTRIBUTES):
        weights = np.atleast_2d(np.asarray(estimator.coef_, dtype=np.float64))
        classes = len(estimator.classes_)
        constants = np.broadcast_to(estimator.intercept_, len(weights))
        if classes == 2 and len(weights) == 1:
            two_rows = np.vstack([np.zeros_like(weights), weights])
            lines = LinearScores(two_rows.T, np.array([0.0, constants[0]]))
        elif len(weights) == classes:
            lines = LinearScores(weights.T, constants)
    elif hasattr(estimator, "feature_log_prob_") and not hasattr(estimator, "binarize"):
        # Naive Bayes on counts; its complement has no priors.
        priors = np.asarray(estimator.class_log_prior_, dtype=np.float64)
        constants = np.zeros_like(priors) if hasattr(estimator, "norm") else priors
        lines = LinearScores(estimator.feature_log_prob_.T, constants)
    elif hasattr(estimator, "centroids_"):
        priors = np.asarray(estimator.class_prior_)
        if estimator.metric != "euclidean":
            return None
        if np.isclose(priors, 1 / len(priors)).all():
            return _scores_of_nearest(estimator.centroids_)
        within = estimator.within_class_std_dev_
        scale = np.where(within != 0, within, 1.0)
        near = _scores_of_nearest(estimator.centroids_ / scale)
        constants = near.constants + np.log(priors)
        lines = LinearScores(near.weights / scale[:, None], constants)
    elif hasattr(estimator, "cluster_centers_"):
        lines = _scores_of_nearest(estimator.cluster_centers_)
    return lines


def _scores_of_nearest(centres: FloatArray) -> LinearScores:
    """Return the scores of the nearest centre: -|x - centre|^2 / 2 up to |x|^2."""
    return LinearScores(centres.T, -(centres**2).sum(axis=1) / 2)


@dataclass(frozen=True)
class Gaussians:
    """Normal laws of K classes: means, precisions and shares."""

    means: FloatArray
    precisions: FloatArray
    shares: FloatArray

    def scores(self, question: base.Question, front: base.Front) -> Scores:
        """Return ln(share x density) around the records, up to a constant."""
        at_zero = front.features(question.records) - question.values @ front.slopes
        pulled = np.einsum("kde,ke->kd", self.precisions, self.means)
        curved = np.einsum("nd,kde->nke", at_zero, self.precisions)
        _, volumes = np.linalg.slogdet(self.precisions)
        distances = (self.means * pulled).sum(axis=1)
        middle = np.asarray(np.log(self.shares) + (volumes - distances) / 2)
        constant = middle + at_zero @ pulled.T
        constant -= np.einsum("nke,ne->nk", curved, at_zero) / 2
        linear = np.einsum("sd,nkd->nsk", front.slopes, pulled - curved)
        half = front.slopes @ self.precisions / 2 @ front.slopes.T
        square = -np.moveaxis(half + np.swapaxes(half, 1, 2), 0, 2) / 2
        return Scores(constant, linear, square)


def read_gaussians(estimator: Any) -> Gaussians | None:
    """Return the estimator's normal laws, None if it has none."""
    if hasattr(estimator, "rotations_"):  # a quadratic discriminant
        pairs = zip(estimator.rotations_, estimator.scalings_, strict=True)
        spread = np.array([turned / size @ turned.T for turned, size in pairs])
        return Gaussians(estimator.means_, spread, estimator.priors_)
    if hasattr(estimator, "var_") and hasattr(estimator, "theta_"):
        spread = np.array([np.diag(1 / row) for row in estimator.var_])
        return Gaussians(estimator.theta_, spread, estimator.class_prior_)
    # The variational mixture's components are no normal laws.
    if hasattr(estimator, "precisions_") and not hasattr(estimator, "mean_prior_"):
        precisions = np.asarray(estimator.precisions_, dtype=np.float64)
        classes, features = estimator.means_.shape
        match estimator.covariance_type:
            case "tied":
                precisions = np.tile(precisions, (classes, 1, 1))
            case "diag":
                precisions = np.array([np.diag(row) for row in precisions])
            case "spherical":
                precisions = precisions[:, None, None] * np.eye(features)
        return Gaussians(estimator.means_, precisions, estimator.weights_)
    return None


class Linear(ScoreEngine):
    """Engine of estimators with ``coef_`` and ``intercept_``.

    Naive Bayes on counts, and the nearest of centroids or centres of clusters, are
    linear in the features as well. Two classes with any number of sensitive features;
    more classes with two of those.
    """

    name, unlike = "linear", "not linear"
    read = staticmethod(read_linear)

    def limit(self, classes: int, noised: int) -> str | None:
        """Return why so many classes and noised features are too many, or None."""
        if classes == 2 or noised <= 2:
            return None
        return (
            f"A linear model of {classes} classes is exact for two sensitive"
            f" features; here are {noised}."
        )


class ClosedForm(ScoreEngine):
    """Engine of quadratic discriminants, Gaussian naive Bayes and mixtures.

    Exact for up to two sensitive features: along one of two values each pair of scores
    crosses at most twice.
    """

    name, unlike = "closed_form", "no discriminant of normal laws"
    read = staticmethod(read_gaussians)

    def limit(self, classes: int, noised: int) -> str | None:
        """Return why so many noised features are too many, or None."""
        if noised <= 2:
            return None
        return (
            f"Quadratic scores are exact for two sensitive features; here are {noised}."
        )
