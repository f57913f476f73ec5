"""The chain of `mrma_privunit` as data: MRMA's, but for reports and what learns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from curvote.protocols.direct.protocol import (
    RELEASED,
    ROLES,
    WHO,
    direction,
    majority_label,
)
from curvote.protocols.mrma import protocol as mrma
from curvote.protocols.mrma.messages import Vote
from curvote.protocols.mrma_privunit.messages import TrainingDirection
from curvote.protocols.stage import Release, Stage

__all__ = ["MESSAGES", "PRODUCTION", "STAGES", "releases"]

MESSAGES = {"report": TrainingDirection(), "vote": Vote()}

_HERE = "curvote.protocols.mrma_privunit"
# No learner: a mean of reports is a classifier.
_AXES = ("epsilon",)
_STUDY, _REAL = (
    {stage.name: replace(stage, axes=_AXES) for stage in stages}
    for stages in (mrma.STAGES, mrma.PRODUCTION)
)

_TRAIN = replace(
    _STUDY["train"],
    module=f"{_HERE}.train",
    params=("train.count", "train.size", "seed", "replicates"),
    plugins=(),
)

STAGES = (
    Stage(
        "privatize",
        f"{_HERE}.privatize",
        inputs=("project",),
        axes=_AXES,
        params=("epsilon", "direct.intercept", *ROLES),
        tables=("directions",),
        side="client -> server",
    ),
    _TRAIN,
    _STUDY["evaluate"],
    _STUDY["aggregate"],
    Stage(
        "report",
        f"{_HERE}.score",
        inputs=("project", "train", "aggregate"),
        axes=_AXES,
        params=("epsilon", "label", "project.judge", *ROLES),
        tables=("scores",),
        side="client (study)",
    ),
)
PRODUCTION = (
    replace(
        RELEASED,
        params=("epsilon", "direct.intercept", "protocol", "project.judge", *WHO),
    ),
    _TRAIN,
    _REAL["evaluate"],
    _REAL["aggregate"],
)


def releases(config: dict[str, Any], d: int) -> list[Release]:
    """Return the messages of each client in words, for every epsilon of a pipeline."""
    what = 'one noised bit: "the classifier was right for me"'
    detail = "each judges one classifier, once, with the whole budget"
    vote = Release("evaluation client", what, "binary_rr", "epsilon", detail)
    report = direction("training client", "the whole of it")
    return [report, vote, majority_label()]
