"""Agreement of each record under one deployment: the library's one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.entropy import Entropy
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.systems.utility.method import intervals
from curvote.systems.utility.method.deployment import (
    OUTPUT,
    WITHHOLD,
    Deployment,
    ReadMode,
    check_deployment,
    deployment_channel,
    is_vector,
    make_setting,
)
from curvote.systems.utility.method.engines import base
from curvote.systems.utility.method.engines.black_box import BlackBoxSurface
from curvote.systems.utility.method.profile import build_profile
from curvote.systems.utility.method.scan import measure

TREES = 20
# The queries are asked in so many parts, each but the first where the trees of those
# before are divided most, chosen among so many times as many points.
ROUNDS, CANDIDATES_FACTOR = 4, 10
# A coordinate lies on an edge this often: noise that is clipped does.
EDGE = 0.1
# Where the trees' shares are no sum of cells, so many draws for one of the model's.
FREE_DRAWS = 20
# What may be missed is left to those draws to this part.
FREE_PART = 0.2


@dataclass(frozen=True)
class Surrogate:
    """Trees fitted to answers of a model, once for all records.

    Parameters
    ----------
    trees : object
        A forest of scikit-learn.
    queries : int
        How many answers they were fitted to.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from curvote.utility import surrogate
    >>> X, y = np.array([[0.1], [0.2], [0.8], [0.9]]), [0, 0, 1, 1]
    >>> model = LogisticRegression().fit(X, y)
    >>> trees = surrogate(model, X, sensitive=(0,), bounds=[(0, 1)], queries=80)
    >>> trees.queries
    80
    """

    trees: Any
    queries: int

    def beside(self, black_box: BlackBoxSurface) -> SurrogateSurface:
        """Return the black box's surface with the trees beside it."""
        question = replace(black_box.question, model=self.trees)
        engine, _ = base.choose_engine(question)
        surface = engine.surface(question)
        return SurrogateSurface(
            **vars(black_box), tree_surface=surface, trees=self.trees
        )


def surrogate(
    model: Any,
    public: ArrayLike,
    *,
    sensitive: tuple[int, ...],
    bounds: ArrayLike,
    queries: int = 20_000,
    seed: int = 0,
) -> Surrogate:
    """Return trees fitted to ``queries`` answers of the model.

    The questions are public records with their ``sensitive`` columns drawn anew,
    uniformly within the ``bounds`` and on their edges. All but a quarter of them are
    asked where trees fitted so far are divided.

    Parameters
    ----------
    model : object
        A fitted classifier, or a function that answers.
    public : array (m, D)
        Public records.
    sensitive : tuple of int
        The columns that are noised, s of them.
    bounds : array (s, 2)
        One (low, high) for each, public.
    queries : int, default=20000
        How many answers are asked for.
    seed : int, default=0
        The random numbers are a study's.

    Returns
    -------
    Surrogate
        For `quantify`, whatever the records.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from curvote.utility import quantify
    >>> X, y = np.array([[0.1], [0.2], [0.8], [0.9]]), [0, 0, 1, 1]
    >>> model = LogisticRegression().fit(X, y)
    >>> trees = surrogate(model, X, sensitive=(0,), bounds=[(0, 1)], queries=80)
    >>> asked = {"mechanism": "pm_01", "epsilon": 2.0, "bounds": [(0, 1)]}
    >>> found = quantify(model, [[0.1]], sensitive=[0], surrogate=trees, **asked)
    >>> found.evidence
    'draws'
    """
    from sklearn.ensemble import RandomForestClassifier

    records = validate.finite(public=public)
    if records.ndim != 2 or not len(records):
        raise UserError(
            f"public has shape {records.shape}; it must be records, (m, D)."
        )
    ends, rng = np.asarray(bounds, dtype=np.float64), np.random.default_rng(seed)

    def sample(n: int) -> FloatArray:
        # Public records with sensitive values drawn anew, (n, D).
        rows = records[rng.integers(len(records), size=n)]
        share = rng.random((n, len(sensitive)))
        share = np.where(rng.random(share.shape) < EDGE, np.rint(share), share)
        low, high = ends.T
        rows[:, list(sensitive)] = low + share * (high - low)
        return rows

    # An answer is no noisy label: each tree is given all of them.
    forest = RandomForestClassifier(TREES, bootstrap=False, random_state=seed)
    size = validate.at_least(ROUNDS, queries=queries) // ROUNDS
    points = sample(queries - (ROUNDS - 1) * size)
    answers = base.predict_batched(model, points)
    for _ in range(1, ROUNDS):
        forest.fit(points, answers)
        candidates = sample(CANDIDATES_FACTOR * size)
        votes = np.sort(forest.predict_proba(candidates), axis=1)
        lead = votes[:, -1] - votes[:, -2] if votes.shape[1] > 1 else votes[:, 0]
        more = candidates[np.argsort(lead, kind="stable")][:size]
        points = np.vstack([points, more])
        answers = np.concatenate([answers, base.predict_batched(model, more)])
    return Surrogate(forest.fit(points, answers), queries)


@dataclass(frozen=True)
class SurrogateSurface(BlackBoxSurface):
    """Surface of a black box with trees as a control variate."""

    tree_surface: base.Surface
    trees: Any

    def answers(self, channel: base.Channel, draws: base.Draws) -> base.Answers:
        """Return the trees' shares, corrected by drawn differences.

        Each interval by itself covers with the confidence, as those of
        `BlackBoxSurface` do. ``queries`` are the draws; those the trees were fitted to
        served all records. Noise with few outputs needs no trees: see
        `BlackBoxSurface.answers`.
        """
        validate.at_least(1, draws=draws.number)
        exact = self.exact_answers(channel, draws.number)
        if exact is not None:
            return exact
        missed = 1 - draws.confidence
        free = base.Draws(
            FREE_DRAWS * draws.number, 1 - FREE_PART * missed, draws.entropy
        )
        tree_answers = self.tree_surface.answers(channel, free)
        at = base.class_indices(self.classes, self.trees.classes_)
        shares = np.zeros((3, len(self.clean), self.n_classes))
        shares[:, :, at] = tree_answers.share, tree_answers.lower, tree_answers.upper
        share, lower, upper = shares
        remaining = 1 - FREE_PART if tree_answers.evidence == "draws" else 1.0
        confidence = 1 - remaining * missed
        more, less = self.differences(channel, draws)
        low, high = intervals.paired_interval(more, less, draws.number, confidence)
        return base.Answers(
            np.clip(share + (more - less) / draws.number, 0, 1),
            np.clip(lower + low, 0, 1),
            np.clip(upper + high, 0, 1),
            "draws",
            np.full(len(self.clean), draws.number, dtype=np.int64),
        )

    def differences(
        self, channel: base.Channel, draws: base.Draws
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return draws of each class by the model alone and the trees alone.

        Both are (n, K), of ``draws.number`` draws a record.
        """
        n, k = len(self.clean), self.n_classes
        counts = np.zeros((2, n * k), dtype=np.int64)
        for piece in self.repeated(channel, draws.number, draws.entropy):
            tree_answers = base.predict_batched(self.trees, piece.rows)
            other = base.class_indices(self.classes, tree_answers)
            for side, answer in enumerate((piece.answer, other)):
                differs = (piece.answer != other) & (answer >= 0)
                at = (piece.record * k + answer)[differs]
                counts[side] += np.bincount(at, minlength=n * k)
        return counts[0].reshape(n, k), counts[1].reshape(n, k)


@dataclass(frozen=True, repr=False)
class Agreement:
    """Agreement of each record with its clean answer.

    Parameters
    ----------
    agreement, lower, upper : arrays (n,)
        ``lower <= agreement <= upper``.
    bound : array (n,)
        The box bound, NaN where there is none.
    evidence : "exact", "bracket" or "draws"
        What kind of answer this is.
    queries : array (n,)
        Counts the model's answers.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from curvote.utility import quantify
    >>> X, y = np.array([[0.1], [0.2], [0.8], [0.9]]), [0, 0, 1, 1]
    >>> model = LogisticRegression().fit(X, y)
    >>> asked = {"mechanism": "pm_01", "epsilon": 2.0, "bounds": [(0, 1)]}
    >>> found = quantify(model, X, sensitive=[0], **asked)
    >>> print(found.evidence, bool((found.lower <= found.agreement).all()))
    exact True
    """

    agreement: FloatArray
    lower: FloatArray
    upper: FloatArray
    bound: FloatArray
    evidence: base.Evidence
    queries: NDArray[np.int64]

    def __repr__(self) -> str:
        """Return the mean, the worst record, how many there are, and the evidence."""
        values = self.agreement
        return (
            f"Agreement(mean={values.mean():.3f}, worst={values.min():.3f},"
            f" records={len(values)}, evidence={self.evidence!r})"
        )


def quantify(
    model: Any,
    records: ArrayLike,
    *,
    sensitive: Sequence[int | str],
    bounds: ArrayLike,
    mechanism: str,
    epsilon: float,
    split: Sequence[float] | None = None,
    read: ReadMode = "raw",
    evidence: base.EvidenceWanted = "auto",
    draws: int = 2000,
    confidence: float = 0.95,
    surrogate: Surrogate | None = None,
    entropy: Entropy | None = None,
    public: ArrayLike | None = None,
    train: tuple[ArrayLike, ArrayLike] | None = None,
    **params: Any,
) -> Agreement:
    """Return the agreement of each record's noised answer with its clean one.

    Noise and agreement of clean records are a study's: where clients' own records
    stand, their figures must not decide what they send. UserError for whatever does not
    fit.

    Parameters
    ----------
    model : object
        A fitted classifier, or a function that answers.
    records : array (n, D)
        In the model's units.
    sensitive : sequence of int or str
        The columns that are noised, s of them, by place or by the model's names.
    bounds : array (s, 2)
        One (low, high) for each, public, in the model's units.
    mechanism : str
        What noises them: a name of `curvote.mechanisms.names`.
    epsilon : float
        The record's total budget.
    split : sequence of float or None, default=None
        Its shares by column, equal where not given.
    read : "raw", "decode" or "retrain", default="raw"
        How the model takes noised records; ``decode`` takes ``public`` records,
        ``retrain`` takes ``train``.
    evidence : "auto", "exact", "bracket" or "draws", default="auto"
        What kind of answer will do.
    draws : int, default=2000
        For each record, where agreement can only be drawn.
    confidence : float in (0, 1), default=0.95
        Of intervals that are drawn.
    surrogate : Surrogate or None, default=None
        The model is asked as a black box, and the part of these trees is exact.
    entropy : Entropy or None, default=None
        Where draws come from.
    public : array (m, D) or None, default=None
        Public records.
    train : (X, y) or None, default=None
        What the model learns from again.
    **params
        The mechanism's own (``delta``, ``size``).

    Returns
    -------
    Agreement
        Of each record, with lower and upper ends.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.array([[0.1], [0.2], [0.8], [0.9]]), [0, 0, 1, 1]
    >>> model = LogisticRegression().fit(X, y)
    >>> asked = {"mechanism": "pm_01", "epsilon": 2.0, "bounds": [(0, 1)]}
    >>> found = quantify(model, [[0.1], [0.45]], sensitive=[0], **asked)
    >>> print(found.agreement.round(2))
    [0.82 0.62]
    """
    setting = make_setting(
        model, records, sensitive=sensitive, bounds=bounds, public=public, train=train
    )
    s = len(setting.sensitive)
    jointly = mechanism in {WITHHOLD, OUTPUT} or is_vector(mechanism)
    equal = None if jointly else (1 / s,) * s
    shares = equal if split is None else tuple(split)
    delta = float(params.pop("delta", 0.0))
    deployment = Deployment(mechanism, epsilon, shares, read, delta, params)
    # Before anything is asked of the model.
    deployment_channel(setting, check_deployment(deployment, setting))
    number = validate.at_least(1, draws=draws)
    drawing = base.Draws(number, validate.fraction(confidence=confidence), entropy)
    profile = build_profile(setting, evidence="draws" if surrogate else evidence)
    if surrogate is not None:  # its trees stand beside the black box
        black_box = cast(BlackBoxSurface, profile.surface)
        profile = replace(profile, surface=surrogate.beside(black_box))
    measured = measure(setting, profile, deployment, drawing)
    if evidence in {"exact", "bracket"} and measured.evidence == "draws":
        raise UserError(
            f"{mechanism} read {read} on {s} features can only be"
            f" drawn: ask for evidence 'draws' or 'auto' instead of {evidence!r}."
        )
    bound = np.full(setting.n, np.nan) if measured.bound is None else measured.bound
    ends = measured.agreement, measured.lower, measured.upper
    return Agreement(*ends, bound, measured.evidence, measured.queries)
