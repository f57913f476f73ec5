"""System `clean`: learners on what clients would never send."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from curvote.base.errors import Problem, UserError
from curvote.chain.axis import EPSILON, PipelineSettings
from curvote.chain.settings import Strict
from curvote.chain.stage import VECTOR, Stage, Table
from curvote.chain.system import MessageDescription, System
from curvote.messages.measures import CLEAN, ERRORS, LEARNER
from curvote.systems.common import checks
from curvote.systems.common.declarations import (
    COMMON_STAGES,
    LEARNERS,
    ROLE_PARAMS,
    SECTIONS,
    score_stage,
)
from curvote.systems.common.mrma_settings import expand_published
from curvote.systems.common.settings import Clients, Learner, Representation, Train
from curvote.systems.common.study import CONFUSION, has_many_classes
from curvote.systems.references.stages import make_estimator


class Settings(Strict):
    """Settings of learners on the clients' own numbers."""

    clients: Clients
    project: Representation
    train: Train | None = None
    learners: list[Learner] = []
    as_published: bool = False


_AXES = ("learner",)

_FITTED = Table(
    "fitted",
    {
        "learner": "int64",
        "coef": VECTOR,
        "intercept": "float64",
        "n": "int64",
        "flagged": "bool",
    },
    side="client (study)",
    unit="classifier",
)
_FIT = Stage(
    "fit",  # not "train": what it makes is for the clients' side only
    "curvote.systems.references.stages:fit",
    inputs=("project",),
    axes=_AXES,
    params=(
        "learner.name",
        "learner.params",
        "train.count",
        "train.size",
        *ROLE_PARAMS,
    ),
    plugins=(LEARNERS,),
    tables=(_FITTED,),
    side="client (study)",
)
_SCORE = score_stage(
    "curvote.systems.references.stages:score_clean",
    ("project", "fit"),
    axes=_AXES,
    params=("project.judge", *ROLE_PARAMS),
    beside=(CONFUSION,),
)


def describe_records(config: Mapping[str, Any], d: int) -> list[MessageDescription]:
    """Return the description of what this system would ask for."""
    what = f"{d} numbers and the label as they are"
    return [MessageDescription("training client", what, "none", epsilon="no privacy")]


def _check_learners(pipeline: PipelineSettings) -> Iterator[Problem]:
    """Require data to learn from, and learners of so many classes."""
    yield from checks.check_learners(pipeline)
    if not has_many_classes(pipeline):
        if pipeline.train is not None:
            yield from checks.check_training_size(pipeline)
        return
    for index, learner in enumerate(pipeline.learners):
        try:
            make_estimator(learner.name, learner.params)
        except UserError as error:
            yield Problem(str(error), ("learners", index))


# No model is kept: it would be fitted on what clients never send.

SYSTEM = System(
    name="clean",
    settings=Settings,
    stages=(*COMMON_STAGES, _FIT, _SCORE),
    axes=(LEARNER,),
    x=EPSILON,
    study_messages=(describe_records,),
    metrics=ERRORS,
    methods=(CLEAN,),
    main=("clean",),
    checks=checks.combine_checks(
        checks.check_test_clients, _check_learners, classes=checks.check_many_classes
    ),
    normalize=expand_published,
    sections=SECTIONS,
)
