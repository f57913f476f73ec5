"""Trees beside a black box: theirs is known, so that only the difference is drawn.

They are a control variate, whose own mean is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.systems.utility.method import intervals
from curvote.systems.utility.method.channel import Channel
from curvote.systems.utility.method.engines.base import (
    Answers,
    Draws,
    Question,
    Surface,
    choose_engine,
    class_indices,
    predict_batched,
)
from curvote.systems.utility.method.engines.black_box import BlackBoxSurface

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
        model_question = black_box.question
        question = Question(
            self.trees,
            model_question.records,
            model_question.sensitive,
            model_question.bounds,
        )
        engine, _ = choose_engine(question)
        tree_surface = engine.surface(question)
        return SurrogateSurface(
            black_box.clean, black_box.n_classes, black_box, tree_surface, self.trees
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

    candidates = _QueryPoints(
        _check_public(public), sensitive, np.asarray(bounds, dtype=np.float64)
    )
    rng = np.random.default_rng(seed)
    # An answer is no noisy label: each tree is given all of them.
    forest = RandomForestClassifier(TREES, bootstrap=False, random_state=seed)
    points = candidates.sample(_round_sizes(queries)[0], rng)
    answers = predict_batched(model, points)
    for part in _round_sizes(queries)[1:]:
        forest.fit(points, answers)
        more = _most_divided(forest, candidates.sample(CANDIDATES_FACTOR * part, rng))[
            :part
        ]
        points = np.vstack([points, more])
        answers = np.concatenate([answers, predict_batched(model, more)])
    return Surrogate(forest.fit(points, answers), queries)


def _round_sizes(queries: int) -> list[int]:
    """Return the number of queries of each round."""
    size = validate.at_least(ROUNDS, queries=queries) // ROUNDS
    return [queries - (ROUNDS - 1) * size] + (ROUNDS - 1) * [size]


def _check_public(public: ArrayLike) -> FloatArray:
    """Return public records, checked."""
    records = validate.finite(public=public)
    if records.ndim != 2 or not len(records):
        raise UserError(
            f"public has shape {records.shape}; it must be records, (m, D)."
        )
    return records


@dataclass(frozen=True)
class _QueryPoints:
    """Points for queries: public records with sensitive values drawn anew."""

    public: FloatArray
    sensitive: tuple[int, ...]
    bounds: FloatArray

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Return ``n`` random points, (n, D)."""
        rows = self.public[rng.integers(len(self.public), size=n)]
        share = rng.random((n, len(self.sensitive)))
        share = np.where(rng.random(share.shape) < EDGE, np.rint(share), share)
        low, high = self.bounds.T
        rows[:, list(self.sensitive)] = low + share * (high - low)
        return rows


def _most_divided(forest: Any, points: FloatArray) -> FloatArray:
    """Return the points, those of the smallest lead first."""
    votes = np.sort(forest.predict_proba(points), axis=1)
    lead = votes[:, -1] - votes[:, -2] if votes.shape[1] > 1 else votes[:, 0]
    return points[np.argsort(lead, kind="stable")]


@dataclass(frozen=True)
class SurrogateSurface(Surface):
    """Surface of a black box with trees as a control variate."""

    black_box: BlackBoxSurface
    tree_surface: Surface
    trees: Any

    def answers(self, channel: Channel, draws: Draws) -> Answers:
        """Return the trees' shares, corrected by drawn differences.

        Each interval by itself covers with the confidence, as those of
        `BlackBoxSurface` do. ``queries`` are the draws; those the trees were fitted to
        served all records. Noise with few outputs needs no trees: see
        `BlackBoxSurface.answers`.
        """
        validate.at_least(1, draws=draws.number)
        exact = self.black_box.exact_answers(channel, draws.number)
        if exact is not None:
            return exact
        missed = 1 - draws.confidence
        free = Draws(FREE_DRAWS * draws.number, 1 - FREE_PART * missed, draws.entropy)
        tree_answers = self.tree_surface.answers(channel, free)
        at = class_indices(self.black_box.classes, self.trees.classes_)
        shares = np.zeros((3, len(self.clean), self.n_classes))
        shares[:, :, at] = tree_answers.share, tree_answers.lower, tree_answers.upper
        by_class = replace(
            tree_answers, share=shares[0], lower=shares[1], upper=shares[2]
        )
        remaining = 1 - FREE_PART if tree_answers.evidence == "draws" else 1.0
        trees, confidence = by_class, 1 - remaining * missed
        more, less = self.differences(channel, draws)
        low, high = intervals.paired_interval(more, less, draws.number, confidence)
        return Answers(
            np.clip(trees.share + (more - less) / draws.number, 0, 1),
            np.clip(trees.lower + low, 0, 1),
            np.clip(trees.upper + high, 0, 1),
            "draws",
            np.full(len(self.clean), draws.number, dtype=np.int64),
        )

    def differences(
        self, channel: Channel, draws: Draws
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return draws of each class by the model alone and the trees alone.

        Both are (n, K), of ``draws.number`` draws a record.
        """
        n, k = len(self.clean), self.n_classes
        counts = np.zeros((2, n * k), dtype=np.int64)
        for piece in self.black_box.repeated(channel, draws.number, draws.entropy):
            other = class_indices(
                self.black_box.classes, predict_batched(self.trees, piece.rows)
            )
            for side, answer in enumerate((piece.answer, other)):
                differs = (piece.answer != other) & (answer >= 0)
                at = (piece.record * k + answer)[differs]
                counts[side] += np.bincount(at, minlength=n * k)
        return counts[0].reshape(n, k), counts[1].reshape(n, k)

    def holds(self, low: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
        """Raise NotImplementedError, as a black box does."""
        return self.black_box.holds(low, high)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the black box; the trees are fitted anew."""
        return self.black_box.arrays()
