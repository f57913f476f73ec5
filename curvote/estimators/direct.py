"""Classifiers from one noised release a client, as scikit-learn classes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.entropy import Entropy, RandomState, SeededEntropy, StudyStreams
from curvote.base.errors import UserError
from curvote.chain.stage import Columns
from curvote.curves.basis import roughness_matrix
from curvote.curves.encoding import UNBOUNDED_RESCALINGS, Encoded
from curvote.estimators.base import Line, Places, TwoSidedClassifier
from curvote.learning import learners
from curvote.learning.votes import averaging_weights, draw_subsets
from curvote.messages.arms import LABEL_SHARES, protocol_of
from curvote.messages.message import ClientData, Message, messages_of
from curvote.messages.stages import public_metadata
from curvote.systems.common import models
from curvote.systems.common.tables import lines_of_variant
from curvote.systems.direct import stages
from curvote.systems.direct.system import choose_arm
from curvote.systems.mrma.messages import MESSAGES
from curvote.systems.mrma.stages import ensemble_columns
from curvote.wire.task import Task

Array = NDArray[np.float64]

AUTO = "auto"


class DirectClassifier(TwoSidedClassifier):
    """A classifier from one noised vector a client, its numbers and its label in one.

    `fit` plays both sides: every row releases one report of all of ``epsilon``, by
    ``PrivUnit`` (arm ``one_of``: by 1-of-K), and the server reads their mean as a
    linear classifier. At the same budget far less noise remains than with
    `MRMAClassifier` (protocol ``direct``).

    Parameters
    ----------
    basis : "bspline", "fourier" or None, default=None
        None takes the columns of X as d features; otherwise X holds curves on an
        equidistant grid, as an array or an FDataGrid.
    n_basis : int, default=5
        Number of basis functions d; of Fourier functions it is odd.
    order : int, default=4
        Order of B-splines (4 = cubic).
    grid : array (T,) or None, default=None
        The grid points of curves in an array; None is [0, 1]. An FDataGrid brings its
        own.
    epsilon : float, default=1
        Budget of each row's one report, 2^-20 <= epsilon < inf.
    rescale : "standard", "tanh", "min_max", "max_abs", "none" or None, default=None
        How coefficients become z, best of root mean square 1 around 0. None:
        ``standard`` with a basis, ``min_max`` without.
    centre, scale : float or array (d,), default=0, 1
        Public constants of ``standard`` and ``tanh``, never taken from X.
    bounds : (lower, upper) of floats or arrays (d,), default=(-1, 1)
        Public bounds of ``min_max``; values beyond count as lying on them.
    coordinates : "orthonormal" or "coefficients", default="orthonormal"
        Of the space that the basis spans; feature vectors are left as they are.
    arm : "auto", "mean", "joint", "two" or "one_of", default="auto"
        The label moment alone, the second moment beside it, or a first round of 30 % of
        the rows (at random) that centres and whitens z for the others; or one of the
        classes and a direction in one answer, for many classes at large epsilon.
        ``auto`` takes what the rule of `curvote.systems.direct.system` makes of n, d
        and epsilon.
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
    many = True

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
        coordinates: str = "orthonormal",
        arm: str = AUTO,
        intercept: float | str = AUTO,
        random_state: RandomState = None,
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
        self.coordinates = coordinates
        self.arm = arm
        self.intercept = intercept
        self.random_state = random_state

    def _learn(self, template: Task, encoded: Encoded, labels: Places) -> Line:
        n, d = encoded.z.shape
        rule = choose_arm(n, d, self.epsilon, n_classes=len(template.classes))
        wanted = validate.one_of((AUTO, *LABEL_SHARES), arm=self.arm)
        self.arm_ = str(rule.arm) if wanted == AUTO else wanted
        self.noise_, self.reason_ = rule.noise, rule.reason
        self.task_ = self._first_task(template)
        rng, noise = self._count_fit(n)
        data = ClientData(encoded.coefficients, encoded.z, labels)
        crowd = _Crowd(data, rng.permutation(n), noise)
        return models.classifier_line(self._decode_rounds(crowd))

    def _first_task(self, template: Task) -> Task:
        """Return the first round's task, with the terms of its message."""
        if isinstance(self.intercept, str):
            validate.one_of((AUTO,), intercept=self.intercept)
        else:
            validate.positive(intercept=self.intercept)
        options = {"direct.arm": self.arm_, "direct.intercept": self.intercept}
        protocol = protocol_of(self.arm_)
        terms = messages_of(protocol)["report"].terms(
            options.__getitem__, template.encoding
        )
        return replace(template, protocol=protocol, **terms)

    def _decode_rounds(self, crowd: _Crowd) -> Columns:
        """Return the table ``classifier`` that the server makes of all rounds."""
        report, *later = messages_of(self.task_.protocol).values()
        first = crowd.collect_reports(report, self.task_)
        terms = public_metadata(self.task_)
        if self.arm_ == "one_of":
            return stages.decode_one_of([first], terms)
        if not later:
            return stages.decode_reports([first], terms)
        whitening = stages.whitening_columns([first], terms)
        task = later[0].task(self.task_, lambda *_: whitening)
        second = crowd.collect_reports(later[0], task)
        return stages.decode_two_rounds([first], [second], whitening, terms)


@dataclass(frozen=True)
class _Crowd:
    """Clients in memory: their data, a random order, and the source of noise."""

    data: ClientData
    order: NDArray[np.int64]
    noise: Entropy

    def collect_reports(self, kind: Message, task: Task) -> Columns:
        """Return the server's table of the senders' reports."""
        rows = kind.senders.rows({"train": self.order, "vote": self.order[:0]})
        noise = seeded = self.noise
        if isinstance(seeded, SeededEntropy):
            noise = StudyStreams(lambda _: seeded)
        return kind.collect(task, kind.draw(task, self.data.subset(rows), noise))


class MRMAClassifier(TwoSidedClassifier):
    """Model reversal and averaging under local differential privacy (Qin & Bai 2026).

    `fit` plays both sides: a part of the rows become training clients, who release one
    noised report each; the others are evaluation clients, who release one noised vote
    each on one of ``n_learners`` weak classifiers. Every row spends ``epsilon`` once.

    Parameters
    ----------
    basis : "bspline", "fourier" or None, default=None
        None takes the columns of X as d features; otherwise X holds curves on an
        equidistant grid, as an array or an FDataGrid.
    n_basis : int, default=5
        Number of basis functions d; of Fourier functions it is odd.
    order : int, default=4
        Order of B-splines (4 = cubic).
    grid : array (T,) or None, default=None
        The grid points of curves in an array; None is [0, 1]. An FDataGrid brings its
        own.
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
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : array
        Their names, where X was a DataFrame.
    grid_ : array (T,) or None
        The grid of the curves; predict refuses an FDataGrid on another one. None where
        X was an array of features.
    utility_, weight_, reversed_ : arrays (n_learners,)
        What the votes say of each weak classifier.
    none_passed_ : bool
        Whether no utility was above the cutoff.
    task_ : Task
        The public task description.
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
        random_state: RandomState = None,
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

    def _learn(self, template: Task, encoded: Encoded, labels: Places) -> Line:
        self._check_parameters(template)
        self.task_ = replace(
            template, mechanism=self.mechanism, label_share=self.label_share
        )
        MESSAGES["report"].check_task(self.task_)
        rng, entropy = self._count_fit(len(labels))
        everybody = ClientData(encoded.coefficients, encoded.z, labels)
        order, n_train = rng.permutation(len(labels)), self._train_count(len(labels))
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

    def _check_parameters(self, template: Task) -> None:
        """Refuse parameters that would fail after the rows have reported."""
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

    def _train_count(self, n: int) -> int:
        return min(max(2, round(n * self.train_share)), n - 1)

    def _fit_weak(self, rng: np.random.Generator, reports: Columns) -> Columns:
        count, n = int(self.n_learners), len(reports["z"])
        size = min(int(self.n_per_learner), n)
        problems = [
            models.make_problem(reports, rows)
            for rows in draw_subsets(rng, n, count, size)
        ]
        learner = {"learner": self.learner, "params": {}}
        basis = self.task_.encoding.projection
        penalties = {"gram": basis.gram, "roughness": roughness_matrix(basis)}
        (fits,) = models.fit_repetitions([problems], penalties, learner)
        return models.weak_table(np.zeros(count, dtype=np.int8), fits)
