"""What protocols measure: how often a classifier errs on clients it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from curvote.chain.axis import Axis, Settings, Value
from curvote.chain.measure import Metric

MISCLASSIFICATION: Final = Metric(
    "misclassification",
    "error on new {record}s",
    said="errs on {value} of new {record}s",
    words="Share of new {record}s that each method gets wrong",
    bound="bayes_error",
)
NONE_PASSED: Final = Metric(
    "none_passed", "no classifier passed the cutoff", beside="misclassification"
)
AGREEMENT: Final = Metric(
    "agreement",
    "agreement with what is clean",
    better="higher",
    said="agrees with what is clean in {value} of cases",
    words="How often noise changes nothing: a label, or a classifier's answer",
)
RECALL: Final = Metric(
    "recall",
    "recall",
    better="higher",
    words="Share of a class's new {record}s that are recognised",
    figure=False,
    each="class",
)
ERRORS: Final = (MISCLASSIFICATION, NONE_PASSED, RECALL)


def _taught(settings: Settings) -> Sequence[Any]:
    """Return the learners, or the models that a system names by themselves."""
    found: Sequence[Any] = getattr(settings, "models", None) or settings.learners
    return found


def _labels(settings: Settings) -> list[Value]:
    return [learner.label for learner in _taught(settings)]


def _learner(settings: Settings, label: Value | None) -> dict[str, object] | None:
    mine = (one.model_dump() for one in _taught(settings) if one.label == label)
    return next(mine, None)


LEARNER: Final = Axis("learner", _labels, _learner, key="learners")
