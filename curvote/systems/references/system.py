"""Systems to compare with: `majority`, an elected class, and `clean`, no privacy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import Problem, UserError
from curvote.chain.axis import EPSILON, PipelineSettings
from curvote.chain.settings import Strict
from curvote.chain.stage import VECTOR, Stage, Table
from curvote.chain.system import MessageDescription, System, View
from curvote.messages.measures import CLEAN, ERRORS, LEARNER, MAJORITY
from curvote.systems.common import checks, declarations, models, settings, study
from curvote.systems.references.messages import MESSAGES_BY_SYSTEM
from curvote.systems.references.stages import elect_class, make_estimator

if TYPE_CHECKING:
    from curvote.systems.references.model import ConstantClassifier


_STAGES: Final = "curvote.systems.references.stages"
LABELS: Final = Table("labels", {"label": "int8"}, unit="message")
ELECTED: Final = Table("elected", {"place": "int64", "n": "int64"}, unit="classifier")


def majority_model(view: View) -> ConstantClassifier:
    """Return the constant classifier of the first repetition."""
    from curvote.systems.references.model import ConstantClassifier  # see `linear`

    classes = list(view.metadata("project")["classes"])
    place = elect_class(_noised_labels(view), len(classes))
    return ConstantClassifier(models.record_columns(view), classes, place)


def majority_outcome(view: View) -> dict[str, float]:
    """Return the number of labels that were counted."""
    return {"reports": len(_noised_labels(view))}


def _noised_labels(view: View) -> NDArray[np.int8]:
    return view.columns("privatize", "labels", models.FIRST_REPETITION)["label"]


_PRIVATIZE = declarations.client_stage("privatize", f"{_STAGES}:privatize", LABELS)
_AGGREGATE = declarations.server_stage(
    "aggregate", f"{_STAGES}:aggregate", ("project", "privatize"), ELECTED
)
_RELEASE = declarations.release_stage(
    _PRIVATIZE, "report", ("ingest", "project"), ("project.judge",)
)
_SCORE = declarations.score_stage(
    f"{_STAGES}:score", ("project",), params=("epsilon", *declarations.ROLE_PARAMS)
)


SYSTEM = System(
    name="majority",
    settings=settings.Shared,
    stages=(*declarations.COMMON_STAGES, _PRIVATIZE, _AGGREGATE, _SCORE),
    production=(*declarations.COMMON_STAGES, _RELEASE, _AGGREGATE),
    messages=MESSAGES_BY_SYSTEM["majority"],
    metrics=ERRORS,
    methods=(MAJORITY,),
    main=("majority",),
    checks=checks.combine_checks(
        checks.check_test_clients, classes=checks.check_many_classes
    ),
    final_model=majority_model,
    production_metrics=majority_outcome,
    sections=declarations.SECTIONS,
)


class CleanSettings(Strict):
    """Settings of learners on the clients' own numbers."""

    clients: settings.Clients
    project: settings.Representation
    train: settings.Train | None = None
    learners: list[settings.Learner] = []
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
    f"{_STAGES}:fit",
    inputs=("project",),
    axes=_AXES,
    params=(
        "learner.name",
        "learner.params",
        "train.count",
        "train.size",
        *declarations.ROLE_PARAMS,
    ),
    plugins=(declarations.LEARNERS,),
    tables=(_FITTED,),
    side="client (study)",
)
_SCORE_CLEAN = declarations.score_stage(
    f"{_STAGES}:score_clean",
    ("project", "fit"),
    axes=_AXES,
    params=("project.judge", *declarations.ROLE_PARAMS),
    beside=(study.CONFUSION,),
)


def describe_records(config: Mapping[str, Any], d: int) -> list[MessageDescription]:
    """Return the description of what this system would ask for."""
    what = f"{d} numbers and the label as they are"
    return [MessageDescription("training client", what, "none", epsilon="no privacy")]


def _check_learners(pipeline: PipelineSettings) -> Iterator[Problem]:
    """Require data to learn from, and learners of so many classes."""
    yield from checks.check_learners(pipeline)
    if not study.has_many_classes(pipeline):
        if pipeline.train is not None:
            yield from checks.check_training_size(pipeline)
        return
    for index, learner in enumerate(pipeline.learners):
        try:
            make_estimator(learner.name, learner.params)
        except UserError as error:
            yield Problem(str(error), ("learners", index))


# No model is kept: it would be fitted on what clients never send.

_CLEAN = System(
    name="clean",
    settings=CleanSettings,
    stages=(*declarations.COMMON_STAGES, _FIT, _SCORE_CLEAN),
    axes=(LEARNER,),
    x=EPSILON,
    study_messages=(describe_records,),
    metrics=ERRORS,
    methods=(CLEAN,),
    main=("clean",),
    checks=checks.combine_checks(
        checks.check_test_clients, _check_learners, classes=checks.check_many_classes
    ),
    normalize=checks.expand_published,
    sections=declarations.SECTIONS,
)

SYSTEMS: Final = (SYSTEM, _CLEAN)
