"""Engine and surface of classifiers by scores."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.utility.engines.asking import class_indices, predict_batched
from curvote.utility.engines.base import Engine, Question, Surface
from curvote.utility.engines.fronts import split_front
from curvote.utility.engines.scores.forms import Scores
from curvote.utility.engines.scores.surface import ScoreSurface
from curvote.validate import FloatArray

# Questions that check a model against its scores.
PROBES = 1000
# Answers may differ where the lead is so small a share of the scores: rounding.
CLOSE_LEAD = 1e-9


class ScoreEngine(Engine):
    """Engine for estimators that answer the class of the largest score."""

    @abstractmethod
    def scores(self, question: Question) -> Scores | str:
        """Return the scores around the records, or why there are none."""

    def refusal(self, question: Question) -> str | None:
        """Return why the model is not read so, or None, after `PROBES`."""
        scores = self.scores(question)
        if isinstance(scores, str):
            return scores
        if _answers_differ(question, scores):
            name = type(split_front(question)[0]).__name__
            return f"{name} answers otherwise than the largest of its scores."
        return None

    def surface(self, question: Question) -> Surface:
        """Return the surface of the scores; a model without: UserError."""
        scores = self.scores(question)
        if isinstance(scores, str):
            raise UserError(scores)
        clean = _class_answers(question, question.records, scores)
        return ScoreSurface(clean, scores.classes, question, scores)

    def restored(self, question: Question, arrays: dict[str, NDArray[Any]]) -> Surface:
        """Return the surface built again from its ``arrays``."""
        stored = {name: arrays[name] for name in ("constant", "linear", "square")}
        scores = Scores(**stored)
        return ScoreSurface(arrays["clean"], scores.classes, question, scores)


def _answers_differ(question: Question, scores: Scores) -> bool:
    """Return whether the model answers otherwise than by its scores."""
    which = np.arange(PROBES) % len(question.records)
    rows = question.records[which].copy()
    shares_of_range = np.random.default_rng(0).random((PROBES, len(question.sensitive)))
    low, high = question.bounds.T
    values = low + (high - low) * shares_of_range
    rows[:, list(question.sensitive)] = values
    answers = _class_answers(question, rows, scores)
    probe_scores = scores.of(which)
    ordered = np.sort(probe_scores.at(values), axis=1)
    clear = ordered[:, -1] - ordered[:, -2] > CLOSE_LEAD * np.abs(ordered).max(axis=1)
    return bool((answers != probe_scores.places(values))[clear].any())


def _class_answers(
    question: Question, rows: FloatArray, scores: Scores
) -> NDArray[np.int64]:
    """Return the model's answers as class indices."""
    classes = getattr(question.model, "classes_", np.arange(scores.classes))
    return class_indices(np.asarray(classes), predict_batched(question.model, rows))
