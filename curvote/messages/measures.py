"""Metrics that several systems share, and the table of methods."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
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
    "agreement with the answer without noise",
    better="higher",
    sentence="gives the answer without noise in {value} of cases",
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
AUC: Final = Metric(
    "auc",
    "AUC",
    better="higher",
    beside="misclassification",
    spread=True,
    stands_in=True,
    sentence="ranks one of the second class above one of the first in {value} of pairs",
    words="How often one of the second class is ranked above one of the first",
)
BALANCED_ERROR: Final = Metric(
    "balanced_error",
    "balanced error",
    beside="misclassification",
    spread=True,
    stands_in=True,
    sentence="errs on {value} of new {record}s if each class counts alike",
    words="Mean over the classes of the share that each method gets wrong",
)
ERRORS: Final = (MISCLASSIFICATION, AUC, BALANCED_ERROR, NONE_PASSED, RECALL)


def _settings_learners(settings: PipelineSettings) -> Sequence[Any]:
    learners: Sequence[Any] = getattr(settings, "models", None) or settings.learners
    return learners


def _find_learner(settings: PipelineSettings, label: Value | None) -> Any:
    learners = _settings_learners(settings)
    return next((x.model_dump() for x in learners if x.label == label), None)


LEARNER: Final = Axis(
    "learner",
    lambda settings: [learner.label for learner in _settings_learners(settings)],
    _find_learner,
    key="learners",
)


def _read_methods() -> dict[str, Method]:
    text = (files("curvote.messages") / "methods.toml").read_text("utf-8")
    methods = {}
    for name, fields in tomllib.loads(text).items():
        look = {key: _as_tuple(value) for key, value in fields.pop("look").items()}
        methods[name] = Method(name=name, look=Look(**look), **fields)
    return methods


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value


METHODS: Final = _read_methods()
MAJORITY, CLEAN = METHODS["majority"], METHODS["clean"]
VOLUNTEERS = METHODS["volunteers"]


def methods_named(names: str) -> tuple[Method, ...]:
    """Return the methods of these names, which blanks part."""
    return tuple(METHODS[name] for name in names.split())


def errors_tell_nothing(rows: Iterable[Mapping[Any, Any]]) -> bool:
    """Return whether no privacy errs as often as the majority, by scores of a run.

    As far as the standard error of either tells: where one class is rare, or nothing
    can be learnt.
    """
    best: dict[str, float] = {}
    for row in rows:
        method = row["method"]
        if (
            method in {CLEAN.name, MAJORITY.name}
            and row["metric"] == MISCLASSIFICATION.name
        ):
            least = row["value"] + (row["se"] or 0.0) * (method == CLEAN.name)
            best[method] = min(best.get(method, 1.0), least)
    return len(best) == 2 and best[CLEAN.name] >= best[MAJORITY.name]
