"""Model reversal and averaging as a scikit-learn class."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.chain.stage import Columns
from curvote.errors import UserError
from curvote.estimators.shared import BothSides, Line, Places
from curvote.protocols.classifiers import averaged
from curvote.protocols.message import Known
from curvote.protocols.mrma.aggregate import ensemble
from curvote.protocols.mrma.messages import MESSAGES
from curvote.protocols.mrma.tables import variant
from curvote.protocols.mrma.train import fitted, problem, weak_table
from curvote.random_state import RandomState
from curvote.representation.basis import roughness
from curvote.representation.encoding import Encoded
from curvote.representation.rescale import UNBOUNDED
from curvote.server.weak import draw
from curvote.task import Task

Array = NDArray[np.float64]


class MRMAClassifier(BothSides):
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

    spent_ : `Budget` that a row which stood in every fit of this object has spent:
        a fit draws anew, so they add up. A `clone` begins at nothing and knows of no
        other object: see Notes.
    private_ : False as soon as one of these fits had a ``random_state``

    Raises `UserError` (a ValueError) for parameters or data that are out of range.

    Notes:
    -----
    Scikit-learn's searches fit clones, which cannot count together. With k folds a row
    stands in k - 1 of the k fits, so a cross-validation spends (k - 1) epsilon on it,
    and ``GridSearchCV`` of g candidates (g (k - 1) + 1) epsilon with its refit. Scores
    of held-out rows are computed from the rows as they are: they are not private at
    all. Choose parameters on public or simulated data.

    Examples:
    --------
    >>> import numpy as np
    >>> X, y = np.tile([[-0.5], [0.5]], (100, 1)), np.tile([0, 1], 100)
    >>> model = MRMAClassifier(epsilon=2).fit(X, y)
    >>> print(model.fit(X, y).spent_, model.private_)
    epsilon 4 True
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

    def _learn(self, stated: Task, encoded: Encoded, labels: Places) -> Line:
        _check_bounded(stated.encoding.rescale)
        self.task_ = replace(
            stated, mechanism=self.mechanism, label_share=self.label_share
        )
        rng, entropy = self._draws(len(labels))
        everybody = Known(encoded.coefficients, encoded.z, labels)
        order, n_train = rng.permutation(len(labels)), self._n_train(len(labels))
        train, voters = everybody.of(order[:n_train]), everybody.of(order[n_train:])
        report, vote = MESSAGES["report"], MESSAGES["vote"]
        reports = report.gather(self.task_, report.draw(self.task_, train, entropy))
        weak = self._weak(rng, reports)
        task = vote.task(self.task_, lambda _stage, _table: weak)
        judge = np.arange(len(voters.labels)) % len(weak["coef"])
        bits = vote.draw(task, replace(voters, judge=judge), entropy)
        return self._aggregate(weak, vote.gather(task, bits))

    def _n_train(self, n: int) -> int:
        share = validate.fraction(train_share=self.train_share)
        return min(max(2, round(n * share)), n - 1)

    def _weak(self, rng: np.random.Generator, reports: Columns) -> Columns:
        count, n = validate.at_least(1, n_learners=self.n_learners), len(reports["z"])
        size = min(validate.at_least(2, n_per_learner=self.n_per_learner), n)
        problems = [problem(reports, rows) for rows in draw(rng, n, count, size)]
        learner = {"learner": self.learner, "params": {}}
        basis = self.task_.encoding.projection
        known = {"gram": basis.gram, "roughness": roughness(basis)}
        (fits,) = fitted([problems], known, learner)
        return weak_table(np.zeros(count, dtype=np.int8), fits)

    def _aggregate(self, weak: Columns, votes: Columns) -> Line:
        rule = {name: getattr(self, name) for name in ("cutoff", "when_none_pass")}
        made = ensemble(votes, self.epsilon, rule | {"weights": "excess"})
        self.none_passed_ = bool(made["none_passed"][0])
        self.utility_, self.weight_ = made["utility"], made["weight"]
        self.reversed_ = made["reversed"]
        return averaged(variant(weak, "weak"), made)


def _check_bounded(rescale: str) -> None:
    if rescale in UNBOUNDED:
        raise UserError(
            f"rescale is {rescale!r}, which leaves values that noise on each cannot"
            " hide; take tanh, max_abs or min_max."
        )
