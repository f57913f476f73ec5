"""Small surfaces and models whose robust boxes are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from curvote.systems.utility.method.engines.base import Question, Surface

Points = np.ndarray


@dataclass
class Model:
    """Answers 1 where ``decision`` is above 0, and counts what it is asked."""

    decision: Callable[[Points], np.ndarray]
    asked: int = 0

    def predict(self, X: Points) -> np.ndarray:
        self.asked += len(X)
        return (self.decision(X) > 0).astype(int)


def question(decision, values, bounds) -> Question:
    """All columns are sensitive."""
    points = np.atleast_2d(np.asarray(values, dtype=float))
    sensitive = tuple(range(points.shape[1]))
    return Question(Model(decision), points, sensitive, np.asarray(bounds, dtype=float))


@dataclass(frozen=True)
class Fake(Surface):
    """A surface that is given by the function that says where boxes hold."""

    where: Callable[[Points, Points], np.ndarray]

    def answers(self, channel, draws):
        raise NotImplementedError

    def holds(self, low, high):
        return self.where(low, high)

    def arrays(self):
        return {}


def surface(where) -> Fake:
    """The surface; what it says clean answers are does not matter here."""
    return Fake(np.zeros(1, dtype=np.int64), 2, where)


def half_space(slope, offset, values) -> Fake:
    """A linear classifier: the corner furthest towards the other side decides."""
    slope, sign = np.asarray(slope), np.sign(values @ slope + offset)[:, None]

    def where(low, high):
        towards = np.where(sign * slope > 0, low, high)
        return sign[:, 0] * (towards @ slope + offset) > 0

    return surface(where)
