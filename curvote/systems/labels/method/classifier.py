"""Classifier from public features and one noised code of each label."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from curvote.base import validate
from curvote.base.entropy import (
    Entropy,
    RandomState,
    check_random_state,
    random_sources,
)
from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.base.validate import FloatArray
from curvote.curves.columns import RecordPredictor
from curvote.learning.estimators import Counts, PrivateEstimator
from curvote.systems.labels import words
from curvote.systems.labels.codes import encoding
from curvote.systems.labels.codes.codes import Codes, places_of
from curvote.systems.labels.codes.encoders import AUTO, mechanism_name
from curvote.systems.labels.learners import smoothing
from curvote.systems.labels.learners.base import Learner, TrainingSet
from curvote.systems.labels.learners.factory import make
from curvote.systems.labels.learners.records import further_records, training_records
from curvote.systems.labels.words import label_chances

LP_2ST = "lp_2st"


def check_labels(y: Any, n: int) -> Any:
    """Return labels (n,), one a record; anything else is a UserError."""
    if y is None:
        raise UserError(
            "fit requires y to be passed, but the target y is None; give labels (n,)"
            " or Codes."
        )
    if not hasattr(getattr(y, "cat", y), "categories"):  # pandas' keep their order
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        if y.dtype.kind == "f":  # what a regression learns is no class
            check_classification_targets(y)
    if len(y) != n:
        raise UserError(f"X has {n} records, and y {len(y)} labels; each has one.")
    return y


class CodeCollector(PrivateEstimator):
    """A scikit-learn class whose ``fit`` takes `Codes`, or draws them from labels.

    ``spent_`` is what a label of all those fits has spent, ``releases_`` and
    ``private_`` are those of `PrivateEstimator`; all are None where only codes came.
    """

    alternative = "Draw codes once, by encode, and give them to PrivateSearchCV."
    spent_: Budget | None = None
    releases_: Counts | None = None
    private_: bool | None = None

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on plain labels y (n,); `private_score` takes codes."""
        if isinstance(y, Codes):
            raise UserError(
                "y holds codes, which are no labels; write private_score(model, X,"
                " codes), or choose by PrivateSearchCV."
            )
        return float(super().score(X, y, sample_weight))  # type: ignore[misc]

    def _collect_codes(
        self,
        model: Any,
        X: FloatArray,
        y: Any,
        rng: np.random.Generator,
        entropy: Entropy,
    ) -> Codes:
        """Return the given codes, or codes drawn from plain labels.

        Both must be of the ``classes``, ``epsilon`` and ``encoder`` of ``model``, of
        which ``auto`` takes the codes of any: else a UserError that names both.
        """
        if isinstance(y, Codes):
            encoding.check_same_length(len(X), y)
            if model.classes is not None:
                encoding.check_same_classes("model", model.classes, y)
            if y.epsilon != model.epsilon:
                raise UserError(
                    f"the codes are of epsilon {y.epsilon:g}, the model states"
                    f" {model.epsilon:g}; give it the epsilon of its codes."
                )
            two_rounds = model.encoder == LP_2ST
            encoder = encoding.ROUNDS_ENCODER if two_rounds else model.encoder
            if (
                encoder not in {AUTO, y.encoder}
                and mechanism_name(encoder, y.n_classes, y.epsilon) != y.encoder
            ):
                raise UserError(
                    f"the codes are of encoder {y.encoder}, the model states"
                    f" {model.encoder}."
                )
            return y
        labels = check_labels(y, len(X))
        classes, places = places_of(labels, model.classes)
        self._refuse_few_labels(model, len(X), len(classes))
        if model.encoder != LP_2ST:
            codes = encoding.encode(
                labels, model.classes, model.epsilon, model.encoder, entropy
            )
            self._record_spending(Budget(codes.epsilon), len(X))
            return codes
        first_model = clone(model).set_params(
            classes=classes, encoder=encoding.ROUNDS_ENCODER
        )

        def learn_prior(
            first: NDArray[np.intp], codes: Codes, second: NDArray[np.intp]
        ) -> FloatArray:
            return np.asarray(first_model.fit(X[first], codes).predict_proba(X[second]))

        batches = encoding.encode_in_two_rounds(
            *(classes[places], classes, model.epsilon, entropy),
            *(rng.permutation(len(X)), learn_prior),
        )
        self._record_spending(Budget(next(batches).epsilon), len(X))
        return next(batches)

    def _refuse_few_labels(self, model: Any, n: int, k: int) -> None:
        """Refuse ``n`` labels of ``k`` classes that would be spent in vain."""


ACCURACY, BALANCED = "accuracy", "balanced"
DECISIONS = (ACCURACY, BALANCED)
# Sums of the same numbers in another order differ by less.
_EQUAL = 1e-9
# A class counts as no rarer than that, in parts of an even share.
_RAREST = 1e-3


def break_ties(proba: FloatArray, X: FloatArray, seed: int) -> FloatArray:
    """Return probabilities (n, K) whose rows have one largest entry each.

    Where several are, one of them is raised by 1e-9: which one is drawn from the seed
    and the record's features (n, d), so that a record gets the same class in whatever
    company (ties at random: VEC eq. 16).
    """
    result = proba.copy()
    ties = proba >= proba.max(axis=1, keepdims=True) * (1 - _EQUAL)
    for row in np.flatnonzero(ties.sum(axis=1) > 1):
        rng = np.random.default_rng([seed, crc32(X[row].tobytes())])
        place = rng.choice(np.flatnonzero(ties[row]))
        result[row, place] = result[row].max() + _EQUAL
    return np.asarray(result / result.sum(axis=1, keepdims=True))


def class_frequencies(proba: FloatArray) -> FloatArray:
    """Return the frequency of each class, (K,), by left-out probabilities (r, K).

    A balanced decision divides by these: they know the codes only, with far less noise
    than decoded shares, and a class that the model slights is raised as much.
    """
    return np.asarray(np.maximum(proba.mean(axis=0), _RAREST / proba.shape[1]))


_FOLDS = 3


# Predictions for training records ``rows`` (r,) without their own codes.
LeftOutPredictions = namedtuple("LeftOutPredictions", "rows predictions")


def left_out_votes(
    learner: Learner,
    X: FloatArray,
    codes: Codes,
    rng: np.random.Generator,
    unlabelled: FloatArray | None = None,
) -> tuple[NDArray[np.intp], FloatArray]:
    """Return training records (r,) and the votes (r, K) for them by all others.

    From three folds where the fitted learner has none for nothing.
    """
    rows, votes_of_rows = learner.without_own()
    if votes_of_rows is not None:
        return np.arange(len(X)) if rows is None else rows, votes_of_rows
    votes = np.empty((len(X), codes.n_classes))
    for part in np.array_split(rng.permutation(len(X)), _FOLDS):
        rest = np.setdiff1d(np.arange(len(X)), part)
        if not part.size or not rest.size:
            raise UserError(
                f"X has {len(X)} records (n_samples = {len(X)}); probabilities are"
                f" calibrated in {_FOLDS} parts, which takes as many."
            )
        model = clone(learner).fit(X[rest], codes[rest], rng, unlabelled)
        votes[part] = model.votes(X[part])
    return np.arange(len(X)), votes


@dataclass(eq=False, repr=False)
class PrivateLabelClassifier(CodeCollector, ClassifierMixin, BaseEstimator):
    """A classifier for records whose features are public and whose labels are not.

    Each label is released once, as one epsilon-LDP code; the classifier learns, tunes
    and calibrates itself on codes (Zhao et al. 2025, and what
    `curvote.labels` adds). `fit` plays the clients where it is given plain labels, and
    is the server alone where it is given `Codes`.

    Parameters
    ----------
    estimator : "knn", "spectral", "ridge", "likelihood" or object, default="auto"
        What learns. ``auto`` mixes the others as makes the codes likeliest; each tunes
        itself. An object is a learner with settings of its own, or any
        scikit-learn regressor or multi-label classifier, also in a Pipeline.
    epsilon : float, default=1
        Budget of each label, 2^-20 <= epsilon < inf. Codes must be of the same.
    encoder : "auto", a name that `encode` knows, or "lp_2st", default="auto"
        How a label becomes a code. ``auto`` takes the best one for the number of
        classes and epsilon. ``lp_2st`` asks one half of the clients first and the
        others by ``rr_with_prior``, with what the first codes taught as prior.
    classes : array (K,) or None, default=None
        The public classes. None takes those that occur, which makes them public.
    decide : "accuracy" or "balanced", default="accuracy"
        What `predict` is for: ``balanced`` divides the probabilities by what they are
        in the mean, as if all classes were equally frequent. `predict_proba` and the
        scores made of it stay as they are.
    calibrate : bool, default=True
        Whether votes become probabilities by an exponent that the likelihood of the
        codes chooses; otherwise they are cut to the simplex.
    random_state : int, RandomState, Generator or None, default=None
        None draws from the operating system (`SystemEntropy`), whatever numpy's global
        seed is: the only choice where somebody is to be protected. All else is a
        study's seed (`SeededEntropy`): whoever knows it can remove the noise. An int
        gives the same at each fit; numpy's RandomState and Generator are drawn from.

    Attributes
    ----------
    classes_ : array (K,)
        The public classes.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : array
        Their names, where X was a DataFrame.
    learner_ : object
        The fitted learner; ``learner_.chosen_`` is what it tuned.
    exponent_ : int or None
        The exponent of the probabilities, None without calibration.
    share_, share_se_ : arrays (K,)
        Unbiased estimates of the classes' shares (some may be below 0) and their
        standard errors.
    encoder_ : str
        The name of the codes' mechanism.
    spent_ : Budget or None
        What a label that stood in every fit of plain labels has spent: a fit draws
        anew, so they add up. None where only codes came, which were paid for where they
        were drawn. A ``clone`` begins at nothing.
    releases_ : array (n,) or None
        How many fits released the label of this place; None where only codes came.
    private_ : bool or None
        False as soon as one fit of plain labels had a ``random_state``, None where only
        codes came.

    Notes
    -----
    A UserError (a ValueError) names parameters or data that are out of range.
    Scikit-learn's searches cannot split `Codes` and would draw plain labels anew in
    each fold: take `PrivateSearchCV`, which spends nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from curvote.labels import encode
    >>> X, y = np.tile([[-1.0], [1.0]], (500, 1)), np.tile(["no", "yes"], 500)
    >>> model = PrivateLabelClassifier("knn").fit(X, y)
    >>> print(model.spent_, *model.predict([[-0.9], [1.2]]))
    epsilon 1 no yes
    >>> codes = encode(y, epsilon=2.0)
    >>> print(PrivateLabelClassifier("knn", epsilon=2.0).fit(X, codes).spent_)
    None
    """

    estimator: Any = AUTO
    epsilon: float = 1.0
    _: KW_ONLY
    encoder: str = AUTO
    classes: ArrayLike | None = None
    decide: str = "accuracy"
    calibrate: bool = True
    random_state: RandomState = None

    def fit(self, X: Any, y: Any, unlabelled: Any = None, **refused: Any) -> Self:
        """Learn from records X (n, d) and their plain labels (n,) or `Codes` (n,).

        ``unlabelled`` (u, d) are further public records, for learners of graphs. Each
        call with plain labels asks every label again: see ``spent_``. A
        ``sample_weight`` is a UserError.
        """
        self._refuse_weights(refused)
        inputs = self._fit_learner(X, y, unlabelled)
        if self.calibrate or self.decide == BALANCED:
            self._calibrate_votes(inputs)
        return self._store_classes(inputs.codes)

    def fit_left_out(
        self, X: Any, y: Any, unlabelled: Any = None
    ) -> LeftOutPredictions:
        """Fit, and return predictions for training records without their own codes."""
        inputs = self._fit_learner(X, y, unlabelled)
        predictions = self._calibrate_votes(inputs)
        self._store_classes(inputs.codes)
        return predictions

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class, (n, K); rows sum to 1."""
        return self.predict_both(X).proba

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted class of each record, (n,)."""
        predictions = self.predict_both(X)
        return np.asarray(self.classes_[predictions.places])

    def predict_both(self, X: Any) -> encoding.Predictions:
        """Return the places of the predicted classes, and the probabilities."""
        check_is_fitted(self, "classes_")  # a fit that failed has counted, no more
        records = further_records(self, X)
        proba = self._to_probabilities(self.learner_.votes(records))
        places = self._decide(proba, records)
        return encoding.Predictions(places, break_ties(proba, records, self._ties))

    def predict_given_words(self, X: Any, n_words: int) -> encoding.Predictions:
        """Return predictions of labels, (n, W + 1), where classes are label and word.

        One for each private word that a record may have, and at last that without one.
        """
        chances = label_chances(self.predict_both(X).proba, n_words)
        weighed = chances
        if self.decide == BALANCED:
            weighed = chances / self._frequent.reshape(-1, n_words).sum(axis=1)
        return encoding.Predictions(weighed.argmax(axis=2), chances)

    def _decide(self, proba: FloatArray, records: FloatArray) -> NDArray[np.int64]:
        """Return the place of each record's predicted class, (n,)."""
        if self.decide == BALANCED:
            proba = proba / self._frequent
        return np.asarray(break_ties(proba, records, self._ties).argmax(axis=1))

    def _to_probabilities(self, votes: FloatArray) -> FloatArray:
        if self.exponent_ is None:
            return smoothing.to_simplex(votes)
        return smoothing.probabilities(votes, self.exponent_)

    def _fit_learner(self, X: Any, y: Any, unlabelled: Any) -> TrainingSet:
        """Fit the learner on codes alone, and return the inputs of the fit."""
        records = training_records(self, X)
        further = None
        if unlabelled is not None:
            further = further_records(self, unlabelled, "unlabelled")
        validate.one_of(DECISIONS, decide=self.decide)
        validate.boolean(calibrate=self.calibrate)
        check_random_state(self.random_state)
        make(self.estimator)
        rng, entropy = random_sources(self.random_state)
        codes = self._collect_codes(self, records, y, rng, entropy)
        self.learner_: Learner = make(self.estimator).fit(records, codes, rng, further)
        self.exponent_: int | None = None
        self._ties = int(rng.integers(2**31))
        return TrainingSet(records, codes, rng, further)

    def _calibrate_votes(self, inputs: TrainingSet) -> LeftOutPredictions:
        """Tune the exponent and class frequencies by left-out votes; return these."""
        rows, votes = left_out_votes(self.learner_, *inputs)
        self.exponent_ = None
        if self.calibrate:
            self.exponent_ = smoothing.best_exponent(
                votes, inputs.codes[rows].likelihood()
            )[0]
        proba = self._to_probabilities(votes)
        self._frequent = class_frequencies(proba)
        places = self._decide(proba, inputs.X[rows])
        return LeftOutPredictions(rows, encoding.Predictions(places, proba))

    def _store_classes(self, codes: Codes) -> Self:
        self.share_, self.share_se_ = encoding.class_shares(codes)
        self.classes_, self.encoder_ = codes.classes, codes.encoder
        return self


@dataclass(eq=False, repr=False)
class LabelClassifier(RecordPredictor, ClassifierMixin, BaseEstimator):
    """A classifier trained on codes, of raw records.

    ``predict`` takes records (n, T) as an array or a DataFrame with the ``columns``
    (T,) in any order, and returns the publisher's labels. ``categories`` are the texts
    of columns that were told as 0 and 1, a column each
    (`curvote.base.table_file.indicator_name`). Of ``private`` columns
    (`curvote.systems.labels.words`) a person knows the own word, and is told the label
    given it. ``libraries`` are those of an extra that it needs.
    """

    columns: list[str]
    reduction: Any
    model: Any
    categories: dict[str, list[str]] | None = None
    private: list[dict[str, Any]] | None = None

    libraries: tuple[str, ...] = ()

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the publisher's order."""
        classes = self.model.classes_
        if self.private:
            classes = words.label_classes(classes, words.words_of(self.private))
        return np.asarray(classes)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, (n, K)."""
        return self._predict_rows(X, lambda v: self._predict_both(v).proba)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each record; another width or a NaN is a UserError."""
        return self._predict_rows(
            X, lambda v: self.classes_[self._predict_both(v).places]
        )

    def _predict_both(self, values: FloatArray) -> encoding.Predictions:
        if not self.private:
            result: encoding.Predictions
            result = self.model.predict_both(self._reduced(values))
            return result
        public = words.public_places(self.private, values.shape[1])
        n_words = words.count_words(self.private)
        X = self._reduced(values[:, public])
        by_word: encoding.Predictions = self.model.predict_given_words(X, n_words)
        return by_word[np.arange(len(values)), words.word_places(self.private, values)]

    def _reduced(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.reduction == "passthrough":
            return values
        return np.asarray(self.reduction.transform(values))
