"""What protocols measure: how often a classifier errs on clients it has not seen."""

from __future__ import annotations

from typing import Final

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
ERRORS: Final = (MISCLASSIFICATION, NONE_PASSED)


def _labels(settings: Settings) -> list[Value]:
    return [learner.label for learner in settings.learners]


def _learner(settings: Settings, label: Value | None) -> dict[str, object] | None:
    mine = (one.model_dump() for one in settings.learners if one.label == label)
    return next(mine, None)


LEARNER: Final = Axis("learner", _labels, _learner, key="learners")
