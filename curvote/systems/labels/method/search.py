"""Search among classifiers by codes alone, and an honest score of what was chosen."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from curvote.base import validate
from curvote.base.entropy import (
    RandomState,
    check_random_state,
    random_sources,
    seed_sequence,
)
from curvote.base.errors import UserError, did_you_mean
from curvote.base.validate import FloatArray
from curvote.mechanisms.base import LabelMechanism
from curvote.systems.labels.codes import encoders
from curvote.systems.labels.codes.codes import Codes, TrueLabels
from curvote.systems.labels.codes.encoding import Z
from curvote.systems.labels.learners.factory import Foreign, make
from curvote.systems.labels.learners.records import further_records, training_records
from curvote.systems.labels.learners.smoothing import log_likelihood
from curvote.systems.labels.method import classifier
from curvote.systems.labels.method.scoring import (
    LOSSES,
    SCORINGS,
    Scoring,
    private_score,
    refuse_biased_codes,
    score_contributions,
    unbiased_rows,
)

# The direction in which a hyperparameter makes a learner smoother.
SMOOTHER: Mapping[str, int] = {
    "k": 1,
    "n_neighbors": 1,
    "min_samples_leaf": 1,
    "m": -1,
    "n_components": -1,
    "max_depth": -1,
    "C": -1,
    "alpha": 1,
    "ridge": 1,
}


def simplicity_order(estimators: Sequence[Any]) -> list[int]:
    """Return the places of the candidates' estimators, the simplest first.

    Kinds of learners come in the order of the grid. Within a kind more neighbours,
    fewer eigenvectors or components and more ridge are simpler; what is tuned or has
    no such number keeps the order of the grid.
    """
    parts = []
    for learner in map(make, estimators):
        inner = learner.estimator if isinstance(learner, Foreign) else learner
        steps = inner.steps if isinstance(inner, Pipeline) else [("", inner)]
        parts.append([step for _, step in steps])
    names = [tuple(type(step).__name__ for step in steps) for steps in parts]
    kinds = list(dict.fromkeys(names))

    def sort_key(place: int) -> tuple[Any, ...]:
        rough = []
        for step in parts[place]:
            has_params = hasattr(step, "get_params")
            params = step.get_params(deep=False) if has_params else {}
            values = {name: _finite_number(params.get(name)) for name in SMOOTHER}
            rough.append([-values[name] * sign for name, sign in SMOOTHER.items()])
        return kinds.index(names[place]), rough, place

    return sorted(range(len(estimators)), key=sort_key)


def _finite_number(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else 0.0


LIKELIHOOD: Final = "likelihood"
_ACCURACY = "accuracy"

Params = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class CandidateScores:
    """Fitted candidates, and each record's score of each: (g, n), NaN for none.

    ``scores`` maps the name of a score, by which candidates are judged or which stands
    beside, to those; ``sign`` is -1 where less is better.
    """

    models: Sequence[Any]
    scores: Mapping[str, FloatArray]
    sign: int

    @property
    def best_place(self) -> int:
        """Return the place of the best mean score; of equals the first."""
        return int(np.argmax(np.nanmean(self._signed_scores, axis=1)))

    @property
    def significantly_worse(self) -> NDArray[np.bool_]:
        """Return which candidates are worse than the best beyond the standard error.

        The difference is taken record by record: what both owe to the same codes is in
        neither.
        """
        behind = self._signed_scores[self.best_place] - self._signed_scores
        return np.asarray(np.nanmean(behind, axis=1) > _standard_errors(behind))

    @property
    def simplest_place(self) -> int:
        """The place of the simplest candidate that is not told from the best."""
        apart = self.significantly_worse
        places = simplicity_order([model.estimator for model in self.models])
        return next(place for place in places if not apart[place])

    @property
    def _signed_scores(self) -> FloatArray:
        return self.sign * next(iter(self.scores.values()))

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns of a table with a row a candidate."""
        table: dict[str, NDArray[Any]] = {}
        for name, values in self.scores.items():
            table[f"mean_test_{name}"] = np.nanmean(values, axis=1)
            table[f"std_error_test_{name}"] = _standard_errors(values)
        means = np.nanmean(self._signed_scores, axis=1)
        table["rank_test_score"] = 1 + (means[:, None] < means).sum(axis=1)
        return table | {"told_apart": self.significantly_worse}

    def verdict(self, params: Sequence[Params]) -> str:
        """Return a sentence: the candidate chosen, and those as good as the best."""
        ties = int((~self.significantly_worse).sum())
        chosen = _format_params(params[self.simplest_place])
        if len(params) == 1:
            return f"{chosen} is the only candidate."
        if ties == 1:
            return f"{chosen} is better than the {len(params) - 1} others."
        return (
            f"{ties} of {len(params)} candidates cannot be told from the best,"
            f" {_format_params(params[self.best_place])}: {chosen} is the simplest of"
            " them."
        )


def score_candidates(
    X: Any, codes: Codes, unlabelled: Any, candidates: Sequence[Any], scoring: Scoring
) -> CandidateScores:
    """Fit all candidates on records (n, d) and codes (n,), and score them on the same.

    Each is scored by codes that its votes do not know.
    Where the likelihood of the codes decides, their accuracy is told beside it.
    """
    named: dict[str, Scoring] = {"score": scoring}
    if scoring == LIKELIHOOD:
        named["accuracy"] = _ACCURACY
    shape = len(candidates), len(codes)
    scores = {name: np.full(shape, np.nan) for name in named}
    for place, model in enumerate(candidates):
        votes = model.fit_left_out(X, codes, unlabelled)
        rows, judges = votes.rows, codes[votes.rows]
        for name, kind in named.items():
            if kind == LIKELIHOOD:
                likely = log_likelihood(votes.predictions.proba, judges.likelihood())
                scores[name][place, rows] = likely
                continue
            unbiased = unbiased_rows(judges)
            if not unbiased.any():
                refuse_biased_codes(judges)
            chosen = rows[unbiased]
            records = X.iloc[chosen] if hasattr(X, "iloc") else X[chosen]
            scores[name][place, chosen] = score_contributions(
                votes.predictions[unbiased], records, judges[unbiased], kind
            )
    return CandidateScores(candidates, scores, -1 if scoring in LOSSES else 1)


def _standard_errors(scores: FloatArray) -> FloatArray:
    """Return the standard error of the mean of each row (g, n), NaN left out."""
    count = np.isfinite(scores).sum(axis=1)
    return np.asarray(np.nanstd(scores, axis=1) / np.sqrt(count))


def _format_params(params: Params) -> str:
    return ", ".join(f"{name}={value}" for name, value in params.items()) or "the model"


# An accuracy lies in [0, 1]: a wider interval than that says nothing.
_HALF_WIDTH = 0.5


def draw_holdout(
    codes: Codes, share: float, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Return rows (h,) drawn for scoring: ``share`` of all, of unbiased codes only.

    Too few for any statement are a UserError that says how many labels it takes.
    """
    rows = np.flatnonzero(unbiased_rows(codes))
    holdout = rng.permutation(rows)[: round(share * len(codes))]
    refuse_small_holdout(len(holdout), len(codes), share, codes[:1].mechanism)
    return np.sort(holdout)


def refuse_small_holdout(
    size: int, n: int, share: float, mechanism: LabelMechanism | TrueLabels
) -> None:
    """Refuse (UserError) a share of ``n`` codes too small for any statement."""
    noise, budget = 0.0, ""
    if isinstance(mechanism, LabelMechanism):
        noise = float(mechanism.variance(np.zeros(1, dtype=np.int64)).max())
        budget = f" at epsilon {mechanism.epsilon:g}"
    # So many codes make an accuracy's 95 % interval shorter than [0, 1]: from the
    # variance of one decoded code, and at most 1/4 of the label itself.
    needed = max(2, math.ceil((noise + 0.25) * (Z / _HALF_WIDTH) ** 2))
    if size < needed:
        raise UserError(
            f"holdout is {share:g}: {size} of {n} labels. By {mechanism.name} for"
            f" {mechanism.n_classes} classes{budget} it takes {needed}"
            " held-out labels to say anything of an accuracy,"
            f" {math.ceil(needed / share)} in all."
        )


# For a classifier of estimator "auto", the simplest first.
_LEARNERS: Final = {"estimator": ["ridge", "knn", "likelihood", "spectral"]}

Grid = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]]


@dataclass(eq=False, repr=False)
class PrivateSearchCV(
    classifier.CodeCollector, MetaEstimatorMixin, ClassifierMixin, BaseEstimator
):
    """Chooses the parameters of a `PrivateLabelClassifier` by codes, and says how good.

    A share of the records is held out. Every candidate learns from the others, and is
    judged by what it says of each of them without that record's own code: left-out
    votes, or three folds. The best of many judged so is too good to be true, so the
    score of what was chosen comes from the share held out: of it the features alone
    take part, as further records of the graph.

    Parameters
    ----------
    estimator : PrivateLabelClassifier or None, default=None
        What is tuned; None stands for ``PrivateLabelClassifier()``.
    grid : dict of lists, or a list of such, default=None
        Values for the classifier's parameters, as ``{"estimator": [...]}`` or
        ``{"estimator__k": [...]}``. None: the four learners where ``estimator`` is
        ``auto``, otherwise the classifier as it is.
    holdout : float in (0, 1), default=0.2
        The share of the records that gives ``best_score_``.
    scoring : "likelihood" or a scoring of `private_score`, default="likelihood"
        What candidates are judged by. The likelihood of the codes boasts less.
    random_state : int, RandomState, Generator or None, default=None
        What splits the records; with plain labels also their noise, as in
        `PrivateLabelClassifier`.

    Attributes
    ----------
    best_estimator_, best_params_, best_index_ : object, dict, int
        What was taken: the simplest of those that cannot be told from the best. It was
        trained without the share held out.
    best_score_ : Score
        Of that very model on the share held out: by ``scoring``, and accuracy where
        this is ``likelihood``.
    cv_results_ : dict
        ``params``, ``mean_test_score``, ``std_error_test_score``, ``rank_test_score``
        and ``told_apart``, one entry a candidate, and ``mean_test_accuracy``,
        ``std_error_test_accuracy`` where ``scoring`` is ``likelihood``.
    told_apart_ : array (g,)
        Whether each candidate is behind the best by more than the standard error of
        their difference.
    verdict_ : str
        The same as a sentence.
    held_out_ : array (h,)
        The rows of the share held out.
    classes_, n_features_in_, feature_names_in_ : arrays, int
        As in `PrivateLabelClassifier`.
    spent_, releases_, private_ : Budget, array (n,), bool, or None
        As in `PrivateLabelClassifier`: each label is asked once for all candidates.

    Notes
    -----
    A UserError (a ValueError) names parameters or data that are out of range, and a
    share held out that is too small for any statement.

    The largest of ``cv_results_`` lies above the truth, the more so the more candidates
    there are: of 24 values of k on the circle of 16 classes (2,000 records, epsilon .5)
    the best claimed 56 % in the mean, where the models chosen were right in 42 %, and
    ``best_score_`` said 45 (se 2; ``benchmarks/labels_honest.py``).

    Candidates count as simpler with more neighbours, fewer eigenvectors or more ridge,
    and otherwise in the order of the grid.

    Examples
    --------
    >>> import numpy as np
    >>> from curvote.labels import PrivateLabelClassifier, encode
    >>> X, y = np.tile([[-1.0], [1.0]], (1000, 1)), np.tile(["no", "yes"], 1000)
    >>> codes = encode(y, epsilon=2.0, random_state=0)
    >>> model = PrivateLabelClassifier("knn", epsilon=2.0)
    >>> grid = {"estimator": ["ridge", "knn"]}
    >>> search = PrivateSearchCV(model, grid, random_state=0).fit(X, codes)
    >>> print(search.best_params_, *search.predict([[-0.9], [1.2]]))
    {'estimator': 'ridge'} no yes
    """

    estimator: classifier.PrivateLabelClassifier | None = None
    grid: Grid | None = None
    holdout: float = 0.2
    scoring: Scoring = LIKELIHOOD
    random_state: RandomState = None

    def fit(self, X: Any, y: Any, unlabelled: Any = None, **refused: Any) -> Self:
        """Choose by records X (n, d) and `Codes` (n,), or plain labels asked for once.

        ``unlabelled`` (u, d) are further public records, for learners of graphs. A
        ``sample_weight`` is a UserError.
        """
        self._refuse_weights(refused)
        records = training_records(self, X)
        base = self.estimator
        if base is None:
            base = classifier.PrivateLabelClassifier()
        if not isinstance(base, classifier.PrivateLabelClassifier):
            raise UserError(
                f"estimator is {validate.format_value(base)}; give a"
                " PrivateLabelClassifier, whose own estimator it may tune, or None."
            )
        grid = self.grid
        if grid is None:
            learner = base.estimator
            is_auto = isinstance(learner, str) and learner == encoders.AUTO
            grid = _LEARNERS if is_auto else {}
        tried = _expand_grid(grid, base)
        validate.fraction(holdout=self.holdout)
        if not callable(self.scoring):
            validate.one_of((LIKELIHOOD, *SCORINGS), scoring=self.scoring)
        check_random_state(self.random_state)
        rng, entropy = random_sources(self.random_state)
        seed = base.random_state
        if not isinstance(seed, int | np.integer):
            sequence = seed_sequence(seed)
            generator = rng if sequence is None else np.random.default_rng(sequence)
            seed = int(generator.integers(2**31))
        candidates = []
        for params in tried:
            model = clone(base).set_params(**clone(params, safe=False))
            candidates.append(model.set_params(random_state=seed))
        more = []
        if unlabelled is not None:
            more = [further_records(self, unlabelled, "unlabelled")]
        codes = self._collect_codes(base, records, y, rng, entropy)
        holdout = draw_holdout(codes, self.holdout, rng)
        rest = np.setdiff1d(np.arange(len(codes)), holdout)
        further = self._with_names(np.concatenate([records[holdout], *more]))
        part = self._with_names(records[rest]), codes[rest], further
        scores = score_candidates(*part, candidates, self.scoring)
        place = scores.simplest_place
        self.best_index_, self.best_params_ = place, tried[place]
        self.best_estimator_ = scores.models[place]
        # Whoever fits it anew with plain labels wants noise, not the search's seed.
        self.best_estimator_.set_params(random_state=base.random_state)
        self.cv_results_ = {"params": tried, **scores.to_columns()}
        self.told_apart_ = scores.significantly_worse
        self.verdict_ = scores.verdict(tried)
        self.best_score_ = private_score(
            self.best_estimator_,
            self._with_names(records[holdout]),
            codes[holdout],
            _ACCURACY if self.scoring == LIKELIHOOD else self.scoring,
        )
        self.held_out_, self.classes_ = holdout, codes.classes
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted class of each record, (n,), by what was chosen."""
        check_is_fitted(self, "classes_")
        return np.asarray(self.best_estimator_.predict(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class, (n, K), by what was chosen."""
        check_is_fitted(self, "classes_")
        return np.asarray(self.best_estimator_.predict_proba(X))

    def _with_names(self, records: FloatArray) -> Any:
        names = getattr(self, "feature_names_in_", None)
        return records if names is None else pd.DataFrame(records, columns=names)

    def _refuse_few_labels(self, model: Any, n: int, k: int) -> None:
        """Refuse a holdout too small for any statement, before labels are spent."""
        of_rounds = model.encoder == classifier.LP_2ST
        encoder = "k_rr" if of_rounds else model.encoder
        name = encoders.mechanism_name(encoder, k, model.epsilon)
        if name in encoders.CANDIDATES:
            size = min(round(self.holdout * n), n // 2 if of_rounds else n)
            mechanism = encoders.build_encoder(name, k, model.epsilon)
            refuse_small_holdout(size, n, self.holdout, mechanism)


def _is_dict_of_lists(part: Any) -> bool:
    return isinstance(part, Mapping) and all(
        hasattr(values, "__len__") and not isinstance(values, str)
        for values in part.values()
    )


def _expand_grid(grid: Any, base: Any) -> list[Params]:
    """Return the candidates of a grid; none, and no lists, are UserErrors."""
    parts = [grid] if isinstance(grid, Mapping) else grid
    if not isinstance(parts, list | tuple) or not all(map(_is_dict_of_lists, parts)):
        raise UserError(
            f"grid is {validate.format_value(grid)}; give a dict of lists, such as"
            " {'estimator': ['knn', 'ridge']}, or a list of such."
        )
    parameters = base.get_params(deep=False)
    for name in {str(name).partition("__")[0] for part in parts for name in part}:
        if name not in parameters:
            raise UserError(
                f"grid names {name!r}, no parameter of the estimator."
                f"{did_you_mean(name, parameters)}"
            )
    empty = [name for part in parts for name, values in part.items() if not len(values)]
    if empty or not parts:
        problem = f"no value for {', '.join(map(str, empty))}" if empty else "no member"
        raise UserError(f"grid has {problem}; give at least one candidate.")
    return [dict(params) for params in ParameterGrid(parts)]
