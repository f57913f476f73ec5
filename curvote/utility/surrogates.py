"""Trees beside a black box: theirs is known, so that only the difference is drawn.

They are a control variate, whose own mean is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.errors import UserError
from curvote.utility.channel import Channel
from curvote.utility.engines.asking import placed, told
from curvote.utility.engines.base import Answers, Draws, Question, Surface
from curvote.utility.engines.black_box import Drawn
from curvote.utility.engines.choosing import engine_for
from curvote.utility.evidence import paired
from curvote.validate import FloatArray

TREES = 20
# The queries are asked in so many parts, each but the first where the trees of those
# before are divided most, chosen among so many times as many points.
ROUNDS, AMONG = 4, 10
# A coordinate lies on an edge this often: noise that is clipped does.
EDGE = 0.1
# Where the trees' shares are no sum of cells, so many draws for one of the model's.
FREE = 20
# What may be missed is left to those draws to this part.
KNOWN = 0.2


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

    def beside(self, drawn: Drawn) -> Beside:
        """Return the black box's surface with the trees beside it."""
        of = drawn.question
        question = Question(self.trees, of.records, of.sensitive, of.bounds)
        engine, _ = engine_for(question)
        known = engine.surface(question)
        return Beside(drawn.clean, drawn.n_classes, drawn, known, self.trees)


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

    among = _Points(_records(public), sensitive, np.asarray(bounds, dtype=np.float64))
    rng = np.random.default_rng(seed)
    # An answer is no noisy label: each tree is given all of them.
    forest = RandomForestClassifier(TREES, bootstrap=False, random_state=seed)
    points = among.drawn(_parts(queries)[0], rng)
    answers = told(model, points)
    for part in _parts(queries)[1:]:
        forest.fit(points, answers)
        more = _divided(forest, among.drawn(AMONG * part, rng))[:part]
        points = np.vstack([points, more])
        answers = np.concatenate([answers, told(model, more)])
    return Surrogate(forest.fit(points, answers), queries)


def _parts(queries: int) -> list[int]:
    """Return how many queries each round has."""
    each = validate.at_least(ROUNDS, queries=queries) // ROUNDS
    return [queries - (ROUNDS - 1) * each] + (ROUNDS - 1) * [each]


def _records(public: ArrayLike) -> FloatArray:
    given = validate.finite(public=public)
    if given.ndim != 2 or not len(given):
        raise UserError(f"public has shape {given.shape}; it must be records, (m, D).")
    return given


@dataclass(frozen=True)
class _Points:
    public: FloatArray
    sensitive: tuple[int, ...]
    bounds: FloatArray

    def drawn(self, n: int, rng: np.random.Generator) -> FloatArray:
        rows = self.public[rng.integers(len(self.public), size=n)]
        share = rng.random((n, len(self.sensitive)))
        share = np.where(rng.random(share.shape) < EDGE, np.rint(share), share)
        low, high = self.bounds.T
        rows[:, list(self.sensitive)] = low + share * (high - low)
        return rows


def _divided(forest: Any, points: FloatArray) -> FloatArray:
    """Return the points, first those where the leading class leads by least."""
    votes = np.sort(forest.predict_proba(points), axis=1)
    lead = votes[:, -1] - votes[:, -2] if votes.shape[1] > 1 else votes[:, 0]
    return points[np.argsort(lead, kind="stable")]


@dataclass(frozen=True)
class Beside(Surface):
    """A black box, and what is known of trees that answer much as it does."""

    drawn: Drawn
    known: Surface
    trees: Any

    def answers(self, channel: Channel, draws: Draws) -> Answers:
        """Return the trees' shares and, drawn, by how much the model's differ.

        Each interval by itself covers with the confidence, as those of `Drawn` do.
        ``queries`` are the draws; those the trees were fitted to served all records.
        Noise with few outputs needs no trees: see `Drawn.answers`.
        """
        validate.at_least(1, draws=draws.number)
        exact = self.drawn.exactly(channel, draws.number)
        if exact is not None:
            return exact
        trees, confidence = self._trees(channel, draws)
        more, less = self.differences(channel, draws)
        low, high = paired.interval(more, less, draws.number, confidence)
        return Answers(
            np.clip(trees.share + (more - less) / draws.number, 0, 1),
            np.clip(trees.lower + low, 0, 1),
            np.clip(trees.upper + high, 0, 1),
            "draws",
            np.full(len(self.clean), draws.number, dtype=np.int64),
        )

    def _trees(self, channel: Channel, draws: Draws) -> tuple[Answers, float]:
        """Return the trees' shares by class of the model, and what is left to draws."""
        missed = 1 - draws.confidence
        free = Draws(FREE * draws.number, 1 - KNOWN * missed, draws.entropy)
        told_of = self.known.answers(channel, free)
        at = placed(self.drawn.classes, self.trees.classes_)
        shares = np.zeros((3, len(self.clean), self.n_classes))
        shares[:, :, at] = told_of.share, told_of.lower, told_of.upper
        by_class = replace(told_of, share=shares[0], lower=shares[1], upper=shares[2])
        left = 1 - KNOWN if told_of.evidence == "draws" else 1.0
        return by_class, 1 - left * missed

    def differences(
        self, channel: Channel, draws: Draws
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return how many draws the model alone, and the trees alone, gave each class.

        Both are (n, K), of ``draws.number`` draws a record.
        """
        n, k = len(self.clean), self.n_classes
        counts = np.zeros((2, n * k), dtype=np.int64)
        for piece in self.drawn.repeated(channel, draws.number, draws.entropy):
            other = placed(self.drawn.classes, told(self.trees, piece.rows))
            for side, answer in enumerate((piece.answer, other)):
                alone = (piece.answer != other) & (answer >= 0)
                at = (piece.record * k + answer)[alone]
                counts[side] += np.bincount(at, minlength=n * k)
        return counts[0].reshape(n, k), counts[1].reshape(n, k)

    def holds(self, low: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
        """Raise NotImplementedError, as a black box does."""
        return self.drawn.holds(low, high)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what the black box keeps; the trees are fitted anew."""
        return self.drawn.arrays()
