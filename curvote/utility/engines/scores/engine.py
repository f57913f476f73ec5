"""What engines of classifiers by scores share: the checks, and the surface."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.utility.engines.asking import placed, told
from curvote.utility.engines.base import Engine, Question, Surface
from curvote.utility.engines.fronts import undone
from curvote.utility.engines.scores.forms import Scores
from curvote.utility.engines.scores.surface import Scored
from curvote.validate import FloatArray

# Questions that check a model against its scores.
PROBES = 1000
# Answers may differ where the lead is so small a share of the scores: rounding.
CLOSE = 1e-9


class ScoreEngine(Engine):
    """An engine for estimators whose answer is the class of the largest score."""

    @abstractmethod
    def scores(self, question: Question) -> Scores | str:
        """Return the scores around the records, or why there are none."""

    def refusal(self, question: Question) -> str | None:
        """Return why the model is not read so, or None; it is asked `PROBES` times."""
        scores = self.scores(question)
        if isinstance(scores, str):
            return scores
        if _differs(question, scores):
            name = type(undone(question)[0]).__name__
            return f"{name} answers otherwise than the largest of its scores."
        return None

    def surface(self, question: Question) -> Surface:
        """Return the scores around the records; a model without them is a UserError."""
        scores = self.scores(question)
        if isinstance(scores, str):
            raise UserError(scores)
        clean = _answers(question, question.records, scores)
        return Scored(clean, scores.classes, question, scores)

    def restored(self, question: Question, arrays: dict[str, NDArray[Any]]) -> Surface:
        """Return the surface whose ``arrays`` are given."""
        kept = {name: arrays[name] for name in ("constant", "linear", "square")}
        scores = Scores(**kept)
        return Scored(arrays["clean"], scores.classes, question, scores)


def _differs(question: Question, scores: Scores) -> bool:
    """Say whether the model answers otherwise than by its scores, within the bounds."""
    which = np.arange(PROBES) % len(question.records)
    rows = question.records[which].copy()
    drawn = np.random.default_rng(0).random((PROBES, len(question.sensitive)))
    low, high = question.bounds.T
    values = low + (high - low) * drawn
    rows[:, list(question.sensitive)] = values
    given = _answers(question, rows, scores)
    of_each = scores.of(which)
    found = np.sort(of_each.at(values), axis=1)
    clear = found[:, -1] - found[:, -2] > CLOSE * np.abs(found).max(axis=1)
    return bool((given != of_each.places(values))[clear].any())


def _answers(question: Question, rows: FloatArray, scores: Scores) -> NDArray[np.int64]:
    """Return the model's answers by place; one without ``classes_`` has numbers."""
    classes = getattr(question.model, "classes_", np.arange(scores.classes))
    return placed(np.asarray(classes), told(question.model, rows))
