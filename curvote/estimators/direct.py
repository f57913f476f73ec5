"""Classifiers from one noised release a client, as scikit-learn classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from curvote.base import validate
from curvote.base.classes import Classes, class_shares
from curvote.base.entropy import (
    Entropy,
    RandomState,
    SeededEntropy,
    StudyStreams,
    random_sources,
)
from curvote.base.errors import UserError
from curvote.base.warning_filters import warn_outside
from curvote.chain.stage import Columns
from curvote.curves import basis as bases
from curvote.curves import fpca
from curvote.curves.columns import (
    CurveValues,
    curve_values,
    fill_missing,
    refuse_other_channels,
    refuse_other_grid,
)
from curvote.curves.encoding import (
    RESCALING_CONSTANTS,
    UNBOUNDED_RESCALINGS,
    Encoded,
    Encoding,
    predict_indices,
    volunteer_constants,
)
from curvote.learning import estimators, learners
from curvote.learning.votes import averaging_weights, draw_subsets
from curvote.messages.arms import make_directions, protocol_of
from curvote.messages.message import (
    ClientData,
    Message,
    assign_candidates,
    learning_messages,
)
from curvote.messages.stages import public_metadata
from curvote.systems.common import models
from curvote.systems.common.questions import halving_code
from curvote.systems.common.tables import lines_of_variant
from curvote.systems.direct import stages
from curvote.systems.direct.system import METHODS, choose_protocol, directions_asked
from curvote.systems.mrma.messages import MESSAGES
from curvote.systems.mrma.stages import (
    DIRECTION_RULE,
    ensemble_columns,
    random_directions,
)
from curvote.systems.references.stages import elect_class
from curvote.wire.task import Task

Array = NDArray[np.float64]

AUTO = "auto"
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


@dataclass(kw_only=True, eq=False, repr=False)
class TwoSidedClassifier(
    estimators.WithoutProbabilities, ClassifierMixin, BaseEstimator, ABC
):
    """A linear classifier that a subclass learns by playing clients and server."""

    protocol: ClassVar[str]
    # The rescaling of curves where none is named.
    of_curves: ClassVar[str]

    basis: str | None = None
    n_basis: int = 5
    order: int = 4
    derivative: int = 0
    grid: ArrayLike | None = None
    epsilon: float = 1.0
    rescale: str | None = None
    centre: float | ArrayLike = 0.0
    scale: float | ArrayLike = 1.0
    bounds: tuple[float | ArrayLike, float | ArrayLike] = (-1.0, 1.0)
    public_curves: Any = None

    # What a subclass may take as parameters of its own.
    judge = "rescaled"
    coordinates = "coefficients"

    def fit(self, X: Any, y: ArrayLike, **refused: Any) -> Self:
        """Simulate all rounds on X (n, T or n, d) and labels y (n,).

        Each call asks every row again; ``spent_`` says what a row of all of them spent.
        A ``sample_weight`` is a UserError.
        """
        self._refuse_weights(refused)
        validate.positive(epsilon=self.epsilon)
        projects = self.basis is not None
        curves = curve_values(X, self.grid, project=projects)
        options = self._data_options
        X, y = validate_data(self, curves.values, y, ensure_min_samples=2, **options)
        self.classes_, codes = estimators.encode_labels(y)
        estimators.check_class_count(self.classes_, many=self.many)
        rescale = self.rescale or ("min_max" if self.basis is None else self.of_curves)
        public = self._public_values(curves)
        onto = self._build_projection(X.shape[1], curves, public)
        smooth = projects and (curves.smoothed or bool(np.isnan(X).any()))
        X = fill_missing(X, onto)
        lower, upper = estimators.feature_bounds(self.bounds, len(onto.matrix))
        if not np.less(lower, upper).all():
            raise UserError(
                f"bounds is {validate.format_value(self.bounds)}; each lower end must"
                " be below its upper one."
            )
        centre = validate.finite(centre=self.centre)
        scale = validate.finite(scale=self.scale)
        if public is not None:
            scores, common = onto.apply(public), rescale == "standard"
            mean, unit = volunteer_constants(scores, common)
            centre, scale = mean + unit * centre, unit * scale
        ends = {"lower": lower, "upper": upper}
        public_values = {"centre": centre, "scale": scale} | ends
        needed = RESCALING_CONSTANTS.get(rescale, ())
        constants = {name: public_values[name] for name in needed}
        encoding = Encoding(onto, rescale, constants, self.judge, smooth)
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
        curves = curve_values(X, model=self.grid_, project=self.basis is not None)
        refuse_other_grid(curves.grid, self.grid_)
        learned = getattr(self, "channels_", ())  # an earlier version knew one
        refuse_other_channels(X, curves.channels, learned)
        X = validate_data(self, curves.values, reset=False, **self._data_options)
        encoding = self.task_.encoding
        features = encoding.features(fill_missing(X, encoding.projection))
        if len(self.coef_) == 1:
            return np.asarray(features @ self.coef_[0] + self.intercept_[0])
        return np.asarray(features @ self.coef_.T + self.intercept_)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted class of each row."""
        places = predict_indices(self.decision_function(X))
        return np.asarray(self.classes_[places])

    @property
    def _data_options(self) -> dict[str, Any]:
        # Curves may have missing points.
        finite: Any = True if self.basis is None else "allow-nan"
        return {"dtype": np.float64, "ensure_all_finite": finite}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.basis is not None
        return tags

    def _warn_outside(self, encoding: Encoding, coefficients: Array) -> None:
        """Warn of columns that bounds clip, or that lie far from the stated centre."""
        words = "coefficient {}" if self.basis else "column {}"
        names: Any = [words.format(i) for i in range(encoding.d)]
        if self.basis is None:
            names = getattr(self, "feature_names_in_", names)
        constants = encoding.constants
        if "lower" in constants:
            ends = constants["lower"], constants["upper"]
            estimators.warn_clipped(coefficients, ends, names, depth=5)
        elif "scale" in constants:
            centre, reach = constants["centre"], REACH * constants["scale"]
            ends = centre - reach, centre + reach
            warn_outside(coefficients, ends, names, _FAR, max_share=MOST, depth=4)

    def _count_fit(self, n: int) -> tuple[np.random.Generator, Entropy]:
        """Count a fit of ``n`` rows; return its generator and its noise's entropy.

        To be called before anything is drawn; a later failure takes nothing back.
        """
        generator_and_entropy = random_sources(self.random_state)
        self._record_spending(self.task_.budget, n)
        return generator_and_entropy

    @abstractmethod
    def _learn(self, template: Task, encoded: Encoded, labels: Places) -> Line:
        """Set ``task_`` and return (coef, intercept) for places (n,) of classes."""

    def _public_values(self, curves: CurveValues) -> Array | None:
        """Return the public curves (m, T) that make the basis, if any do."""
        if self.basis != bases.FPCA:
            if self.public_curves is not None:
                raise UserError(
                    f"public_curves are given, but basis is {self.basis!r}; only 'fpca'"
                    " is made of them."
                )
            return None
        if self.public_curves is None:
            raise UserError(
                "basis is 'fpca', and nobody's private curve may make it: give curves"
                " that are public, public_curves=, such as volunteers'."
            )
        public = curve_values(self.public_curves, self.grid, curves.grid, project=True)
        refuse_other_grid(public.grid, curves.grid)
        refuse_other_channels(self.public_curves, public.channels, curves.channels)
        return np.asarray(public.values)

    def _build_projection(
        self, width: int, curves: CurveValues, public: Array | None
    ) -> bases.Projection:
        coordinates = validate.one_of(COORDINATES, coordinates=self.coordinates)
        self.grid_, self.channels_ = grid, channels = curves.grid, curves.channels
        if self.basis is None:
            if self.derivative:
                raise UserError("derivative is stated without a basis; state both.")
            return bases.identity(width)
        if grid is None:
            self.grid_ = grid = np.linspace(0, 1, width)
        size = self.n_basis, grid
        if public is not None:
            named = (*size, "n_basis")
            return fpca.principal_projection(public, *named, channels=channels)
        plain = bases.projection(
            self.basis, *size, self.order, "n_basis", derivative=self.derivative
        )
        if coordinates == "orthonormal":
            plain = bases.orthonormal(plain)
        return plain.stacked(channels)


@dataclass(kw_only=True, eq=False, repr=False)
class DirectClassifier(TwoSidedClassifier):
    """A classifier from one noised vector a client, its numbers and its label in one.

    `fit` plays both sides: every row releases one report of all of ``epsilon``, by
    ``PrivUnit`` (arm ``one_of``: by 1-of-K), and the server reads their mean as a
    linear classifier. At the same budget far less noise remains than with
    `MRMAClassifier` (protocol ``direct``).

    Parameters
    ----------
    basis : "bspline", "fourier", "fpca" or None, default=None
        None takes the columns of X as d features; otherwise X holds curves, an array,
        FDataGrid or FDataIrregular. Those on no equidistant grid, or with missing
        points (NaN), are smoothed onto one (`curvote.curves.smoothing`). ``fpca`` are
        the principal components of ``public_curves``.
    n_basis : int, default=5
        Number of basis functions for each coordinate; of Fourier functions it is odd.
    order : int, default=4
        Order of B-splines (4 = cubic).
    derivative : 0, 1 or 2, default=0
        Whether the curve that was projected counts, or which derivative of it.
    grid : array (T,) or None, default=None
        The grid points of curves in an array; None is [0, 1]. An FDataGrid brings its
        own, and an FDataIrregular at least a stated domain.
    epsilon : float, default=1
        Budget of each row's one report, 2^-20 <= epsilon < inf.
    rescale : "standard", "tanh", "min_max", "max_abs", "none" or None, default=None
        How coefficients become z, best of root mean square 1 around 0. None:
        ``standard`` with a basis, ``min_max`` without.
    centre, scale : float or array (d,), default=0, 1
        Public constants of ``standard`` and ``tanh``, never taken from X; of ``fpca``
        in units of the public curves' scores, from their mean.
    bounds : (lower, upper) of floats or arrays (d,), default=(-1, 1)
        Public bounds of ``min_max``; values beyond count as lying on them.
    public_curves : array (m, T), FDataGrid or None, default=None
        Curves that are public, such as volunteers', of whom nobody stands in X; they
        make the components of ``fpca``, more of them than ``n_basis``.
    coordinates : "orthonormal" or "coefficients", default="orthonormal"
        Of the space that the basis spans; feature vectors are left as they are.
    arm : "auto" or the name of an arm, default="auto"
        ``mean`` and ``joint`` report the label moment alone, or the second moment
        beside it; ``two`` has a first round of 30 % of the rows (at random) that
        centres and whitens z for the others; ``one_of`` one of the classes and a
        direction in one answer, for many classes at large epsilon. Of ``votes`` each
        row is one bit about a random direction, of ``majority`` its noised label.
        ``auto`` takes what the rule of protocol ``auto`` makes of n, d, epsilon, the
        number of classes and ``balance`` (`curvote.systems.direct.system`).
    balance : array (K,) or None, default=None
        The shares of the classes in their order where these are publicly known, and
        not counted from y: reports are then read with them.
    intercept : "auto" or float above 0, default="auto"
        The public constant s beside z in a report.
    random_state : int, RandomState, Generator or None, default=None
        None draws from the operating system (`SystemEntropy`), whatever numpy's global
        seed is: the only choice where somebody is to be protected. All else is a
        study's seed (`SeededEntropy`): whoever knows it can remove the noise. An int
        gives the same at each fit; numpy's RandomState and Generator are drawn from.

    Attributes
    ----------
    classes_ : array (K,)
        The labels.
    coef_, intercept_ : arrays
        (1, d) and (1,) of two classes, (K, d) and (K,) of more.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : array
        Their names, where X was a DataFrame.
    grid_ : array (T,) or None
        The grid of the curves; predict refuses an FDataGrid on another one. None where
        X was an array of features.
    channels_ : tuple of str
        The names of a curve's coordinates, where there are several.
    arm_ : str
        The arm taken.
    noise_, reason_ : float, str
        The variance of a coordinate of the label moment's noise, and what the rule
        makes of it, whichever arm was asked for.
    task_ : Task
        The public task description of the first round.
    spent_ : Budget
        What a row that stood in every fit of this object has spent: a fit draws anew,
        so they add up.
    releases_ : array (n,)
        How many fits released the row of this place: pass rows in one order.
    private_ : bool
        False as soon as one of these fits had a ``random_state``.

    Notes
    -----
    A UserError (a ValueError) names parameters or data that are out of range.

    A ``clone`` begins at nothing and knows of no other object, so the searches of
    scikit-learn cannot count. With k folds a row stands in k - 1 of the k fits, so a
    cross-validation spends (k - 1) epsilon on it, and ``GridSearchCV`` of g candidates
    (g (k - 1) + 1) epsilon with its refit: clones say so once. Scores of held-out rows
    are computed from the rows as they are: they are not private at all. Choose
    parameters on public or simulated data. Ensembles such as ``BaggingClassifier`` seed
    what they fit: their members' ``private_`` is False.

    Whoever fits hears in a warning which columns lie outside what is stated of them,
    with their shares, which are read from X without noise and kept nowhere. A step that
    learns from X before, as in ``make_pipeline(StandardScaler(), ...)``, reads it
    outside of the budget, and ``spent_`` cannot know: the scaler's mean and width,
    which a saved pipeline holds, are the records' own. State bounds instead, or freeze
    a scaler of public data: ``make_pipeline(FrozenEstimator(scaler), ...)``.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.tile([[-0.5], [0.5]], (100, 1)), np.tile([0, 1], 100)
    >>> model = DirectClassifier(epsilon=2).fit(X, y)
    >>> print(model.fit(X, y).spent_, model.private_, model.releases_[:3])
    epsilon 4 True [2 2 2]
    """

    protocol = "direct"
    of_curves = "standard"

    coordinates: str = "orthonormal"
    arm: str = AUTO
    balance: ArrayLike | None = None
    intercept: float | str = AUTO
    random_state: RandomState = None

    def _learn(self, template: Task, encoded: Encoded, labels: Places) -> Line:
        (n, d), n_classes = encoded.z.shape, len(template.classes)
        balance: dict[str, Any] = {}
        if self.balance is not None:
            balance = {"balance": class_shares(self.balance, n_classes)}
        rule = choose_protocol(n, d, self.epsilon, n_classes=n_classes, **balance)
        wanted = validate.one_of((AUTO, *METHODS), arm=self.arm)
        self.arm_ = rule.method if wanted == AUTO else wanted
        self.noise_, self.reason_ = rule.noise, rule.reason
        if isinstance(self.intercept, str):
            validate.one_of((AUTO,), intercept=self.intercept)
        else:
            validate.positive(intercept=self.intercept)
        # The first round's task, with the terms of its message.
        options = {"direct.arm": self.arm_, "direct.intercept": self.intercept}
        protocol = protocol_of(self.arm_)
        report, *later = learning_messages(protocol).values()
        terms = report.terms(options.__getitem__, template.encoding)
        self.task_ = replace(template, protocol=protocol, **terms)
        rng, noise = self._count_fit(n)
        data = ClientData(encoded.coefficients, encoded.z, labels)
        order = rng.permutation(n)

        def collect_messages(kind: Message, task: Task) -> Columns:
            rows = kind.senders.rows({"train": order, "vote": order[:0]})
            candidate = assign_candidates(task, len(rows), rng)
            senders = replace(data.subset(rows), candidate=candidate)
            source: Entropy = noise
            seeded = noise
            if isinstance(seeded, SeededEntropy):
                source = StudyStreams(lambda _: seeded)
            return kind.collect(task, kind.draw(task, senders, source))

        if protocol == "votes":
            return self._collect_votes(report, rng, collect_messages, (n, d))
        if protocol == "majority":
            self.task_ = report.task(self.task_, lambda *_: {})
            noised = collect_messages(report, self.task_)["label"]
            scores = np.eye(n_classes)[elect_class(noised, n_classes)]
            if n_classes == 2:
                return np.zeros(d), float(scores[1] - scores[0])
            return np.zeros((n_classes, d)), scores
        first = collect_messages(report, self.task_)
        public = {**public_metadata(self.task_), **balance}
        if protocol == "direct_one_of":
            return models.classifier_line(stages.decode_one_of([first], public))
        if not later:
            return models.classifier_line(stages.decode_reports([first], public))
        mean = stages.sum_reports([first], public["epsilon"])
        whitening = stages.whitening_columns(mean, public)
        task = later[0].task(self.task_, lambda *_: whitening)
        second = [collect_messages(later[0], task)]
        means = mean, stages.sum_reports(second, public["epsilon"])
        line = stages.decode_two_rounds(means, whitening, public)
        return models.classifier_line(line)

    def _collect_votes(
        self,
        vote: Message,
        rng: np.random.Generator,
        collect: Callable[[Message, Task], Columns],
        size: tuple[int, int],
    ) -> Line:
        """Return what votes of n rows of d numbers on random directions make."""
        (n, d), rescale = size, self.task_.encoding.rescale
        beside = make_directions("mean", d, rescale, self.intercept).intercept
        code = halving_code(len(self.task_.classes))
        count = directions_asked(n, len(code)) * len(code)
        weak = random_directions(rng, count, d, beside)
        self.task_ = vote.task(self.task_, lambda *_: weak)
        votes = collect(vote, self.task_)
        ensemble = ensemble_columns(votes, self.epsilon, DIRECTION_RULE)
        lines = weak["coef"], weak["intercept"]
        return models.combine_lines(code, lines, models.signed_weights(ensemble))


@dataclass(kw_only=True, eq=False, repr=False)
class MRMAClassifier(TwoSidedClassifier):
    """Model reversal and averaging under local differential privacy (Qin & Bai 2026).

    `fit` plays both sides: a part of the rows become training clients, who release one
    noised report each; the others are evaluation clients, who release one noised vote
    each on one of ``n_learners`` weak classifiers. Every row spends ``epsilon`` once.

    Parameters
    ----------
    basis, n_basis, order, derivative : str or None and int, default=None, 5, 4, 0
        The basis of curves, as of `DirectClassifier`.
    grid, public_curves : arrays, FDataGrid or None, default=None
        The grid points of curves in an array and the curves that are public, as of
        `DirectClassifier`.
    epsilon : float, default=1
        Budget of each row's one release, finite. Of a report each number and the label
        get a part, 2^-20 or more.
    rescale : "tanh", "max_abs", "min_max" or None, default=None
        How coefficients come into [-1, 1]. None: ``tanh`` with a basis, ``min_max``
        without.
    centre, scale : float or array (d,), default=0, 1
        Public constants of ``tanh``, never taken from X.
    bounds : (lower, upper) of floats or arrays (d,), default=(-1, 1)
        Public bounds of ``min_max``; values beyond count as lying on them.
    judge : "rescaled", "coefficients" or "inner_products", default="rescaled"
        What classifiers are applied to: the numbers as reported, the raw coefficients,
        or the inner products of the curve and the basis.
    mechanism : str, default="laplace"
        What noises each number of a report: a name of `curvote.mechanisms.names`.
    label_share : "equal" or float in (0, 1), default="equal"
        The part of a report's budget that its label gets; ``equal`` is 1/(d + 1).
    learner : str, default="centroid"
        What learns a weak classifier from reports: a name of
        `curvote.learning.learners.registry`.
    n_learners : int, default=25
        How many weak classifiers are voted on.
    n_per_learner : int, default=50
        How many reports each of them learns from.
    train_share : float in (0, 1), default=1/6
        The part of the rows that report.
    cutoff : float in [0.5, 1), default=0.8
        The utility above which a classifier counts, after reversal.
    when_none_pass : "soft", "best" or "uniform", default="soft"
        What is averaged where no utility is above the cutoff.
    random_state : int, RandomState, Generator or None, default=None
        None draws from the operating system (`SystemEntropy`), whatever numpy's global
        seed is: the only choice where somebody is to be protected. All else is a
        study's seed (`SeededEntropy`): whoever knows it can remove the noise. An int
        gives the same at each fit; numpy's RandomState and Generator are drawn from.

    Attributes
    ----------
    classes_ : array (K,)
        The labels.
    coef_, intercept_ : arrays
        (1, d) and (1,): the averaged classifier.
    n_features_in_, feature_names_in_, grid_, channels_, spent_, releases_, private_
        As of `DirectClassifier`.
    utility_, weight_, reversed_ : arrays (n_learners,)
        What the votes say of each weak classifier.
    none_passed_ : bool
        Whether no utility was above the cutoff.
    task_ : Task
        The public task description.

    Notes
    -----
    A UserError (a ValueError) names parameters or data that are out of range.
    Scikit-learn's searches fit clones, which cannot count together, and ensembles seed
    what they fit: see `curvote.DirectClassifier` for what they spend.

    As of `curvote.DirectClassifier`, a warning names columns that lie outside what is
    stated of them, and a scaler that learns from X is outside of the budget.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.tile([[-0.5], [0.5]], (100, 1)), np.tile([0, 1], 100)
    >>> model = MRMAClassifier(epsilon=2).fit(X, y)
    >>> print(model.fit(X, y).spent_, model.private_, model.releases_[:3])
    epsilon 4 True [2 2 2]
    """

    protocol = "mrma"
    of_curves = "tanh"
    many = False

    judge: str = "rescaled"
    mechanism: str = "laplace"
    label_share: float | str = "equal"
    learner: str = "centroid"
    n_learners: int = 25
    n_per_learner: int = 50
    train_share: float = 1 / 6
    cutoff: float = 0.8
    when_none_pass: str = "soft"
    random_state: RandomState = None

    def _learn(self, template: Task, encoded: Encoded, labels: Places) -> Line:
        # Refused before the rows have reported.
        rescale = template.encoding.rescale
        if rescale in UNBOUNDED_RESCALINGS:
            raise UserError(
                f"rescale is {rescale!r}, which leaves values that noise on each cannot"
                " hide; take tanh, max_abs or min_max."
            )
        validate.fraction(train_share=self.train_share)
        validate.at_least(1, n_learners=self.n_learners)
        validate.at_least(2, n_per_learner=self.n_per_learner)
        learners.check(self.learner, {})
        averaging_weights([1.0], self.cutoff, self.when_none_pass)
        self.task_ = replace(
            template, mechanism=self.mechanism, label_share=self.label_share
        )
        MESSAGES["report"].check_task(self.task_)
        rng, entropy = self._count_fit(len(labels))
        everybody = ClientData(encoded.coefficients, encoded.z, labels)
        n = len(labels)
        n_train = min(max(2, round(n * self.train_share)), n - 1)
        order = rng.permutation(n)
        train = everybody.subset(order[:n_train])
        voters = everybody.subset(order[n_train:])
        report, vote = MESSAGES["report"], MESSAGES["vote"]
        reports = report.collect(self.task_, report.draw(self.task_, train, entropy))
        weak = self._fit_weak(rng, reports)
        task = vote.task(self.task_, lambda _stage, _table: weak)
        judge = np.arange(len(voters.labels)) % len(weak["coef"])
        bits = vote.draw(task, replace(voters, candidate=judge), entropy)
        votes = vote.collect(task, bits)
        rule = {name: getattr(self, name) for name in ("cutoff", "when_none_pass")}
        result = ensemble_columns(votes, self.epsilon, rule | {"weights": "excess"})
        self.none_passed_ = bool(result["none_passed"][0])
        self.utility_, self.weight_ = result["utility"], result["weight"]
        self.reversed_ = result["reversed"]
        return models.average_ensemble(lines_of_variant(weak, "weak"), result)

    def _fit_weak(self, rng: np.random.Generator, reports: Columns) -> Columns:
        count, n = int(self.n_learners), len(reports["z"])
        size = min(int(self.n_per_learner), n)
        problems = [
            models.make_problem(reports, rows)
            for rows in draw_subsets(rng, n, count, size)
        ]
        learner = {"learner": self.learner, "params": {}}
        basis = self.task_.encoding.projection
        penalties = {"gram": basis.gram, "roughness": bases.roughness_matrix(basis)}
        (fits,) = models.fit_repetitions([problems], penalties, learner)
        return models.weak_table(np.zeros(count, dtype=np.int8), fits)
