"""Metrics and reference methods that several systems share."""

from collections.abc import Sequence
from typing import Any, Final

from curvote.chain.axis import Axis, PipelineSettings, Value
from curvote.chain.measure import Look, Method, Metric

MISCLASSIFICATION: Final = Metric(
    "misclassification",
    "error on new {record}s",
    sentence="errs on {value} of new {record}s",
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
    sentence="agrees with what is clean in {value} of cases",
    words="How often noise changes nothing: a label, or a classifier's answer",
)
RECALL: Final = Metric(
    "recall",
    "recall",
    better="higher",
    words="Share of a class's new {record}s that are recognised",
    figure=False,
    group_kind="class",
)
ERRORS: Final = (MISCLASSIFICATION, NONE_PASSED, RECALL)


def _settings_learners(settings: PipelineSettings) -> Sequence[Any]:
    """Return the learners or models that a system names."""
    learners: Sequence[Any] = getattr(settings, "models", None) or settings.learners
    return learners


def _find_learner(
    settings: PipelineSettings, label: Value | None
) -> dict[str, object] | None:
    matches = (
        learner.model_dump()
        for learner in _settings_learners(settings)
        if learner.label == label
    )
    return next(matches, None)


LEARNER: Final = Axis(
    "learner",
    lambda settings: [learner.label for learner in _settings_learners(settings)],
    _find_learner,
    key="learners",
)


MAJORITY: Final = Method(
    "majority",
    "majority (nothing learnt)",
    "Always guesses one class: the one that noised labels, or noised counts of them, "
    "say is larger. It looks at no record.",
    Look("#6a717b", "", (0, (4, 2.5)), width=1.0, above=2),
    rank=170,
    study_only=True,
    reference=True,
    short_phrase="guessing the larger class",
)


CLEAN: Final = Method(
    "clean",
    "no privacy",
    "A learner on what clients know, as it is, without any noise.",
    Look("#009e73", "P", size=5.2),
    rank=160,
    study_only=True,
    reference=True,
    short_phrase="a learner without any privacy",
)


VOLUNTEERS: Final = Method(
    "volunteers",
    "volunteers alone",
    "Ridge logistic regression on the labelled records of the volunteers, which are "
    "public for good: what they alone buy. Nobody else sends anything.",
    Look("#56b4e9", "X", line="-.", size=5.2),
    rank=141,
    reference=True,
)
