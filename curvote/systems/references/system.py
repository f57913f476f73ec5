"""Systems to compare with: `majority`, an elected class, and `clean`, no privacy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from curvote.base.errors import Problem
from curvote.chain.axis import EPSILON, PipelineSettings
from curvote.chain.settings import Strict
from curvote.chain.stage import Stage, Table
from curvote.chain.system import MessageDescription, View
from curvote.messages.measures import LEARNER
from curvote.systems.common import checks, declarations, models, settings, study
from curvote.systems.common.tables import FITTED_COLUMNS
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
    labels = view.columns("privatize", "labels", models.FIRST_REPETITION)["label"]
    place = elect_class(labels, len(classes))
    return ConstantClassifier(models.record_columns(view), classes, place)


def majority_outcome(view: View) -> dict[str, float]:
    """Return the number of labels that were counted."""
    labels = view.columns("privatize", "labels", models.FIRST_REPETITION)
    return {"reports": len(labels["label"])}


_PRIVATIZE = declarations.client_stage("privatize", _STAGES, LABELS)
_AGGREGATE = declarations.server_stage(
    "aggregate", _STAGES, ("project", "privatize"), ELECTED
)
_RELEASE = declarations.release_stage(
    _PRIVATIZE, "report", ("ingest", "project"), ("project.judge",)
)
_SCORE = declarations.score_stage(
    f"{_STAGES}:score", ("project",), params=("epsilon", *declarations.ROLE_PARAMS)
)


SYSTEM = declarations.learning_system(
    "majority",
    settings.Shared,
    (_PRIVATIZE, _AGGREGATE, _SCORE),
    "majority",
    releases=(_RELEASE,),
    judge_inputs=("privatize", "aggregate"),
    final_model=majority_model,
    production_metrics=majority_outcome,
)


class FunctionalSettings(Strict):
    """Settings of scikit-fda's classifiers of the clients' own curves."""

    clients: settings.Clients
    project: settings.Representation


class CleanSettings(FunctionalSettings):
    """Settings of learners on the clients' own numbers."""

    train: settings.Train | None = None
    learners: list[settings.Learner] = []
    as_published: bool = False


_AXES = ("learner",)

_FITTED = Table("fitted", FITTED_COLUMNS, side="client (study)", unit="classifier")
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


def describe_records(
    config: Mapping[str, Any], d: int, record: str = "{} numbers"
) -> list[MessageDescription]:
    """Return the description of what these systems would ask for."""
    what = f"{record.format(d)} and the label as they are"
    return [MessageDescription("training client", what, "none", epsilon="no privacy")]


def _check_learners(pipeline: PipelineSettings) -> Iterator[Problem]:
    """Require data to learn from, and learners of so many classes."""
    yield from checks.check_learners(pipeline)
    if not study.has_many_classes(pipeline):
        if pipeline.train is not None:
            yield from checks.check_training_size(pipeline)
        return
    for index, learner in enumerate(pipeline.learners):
        values = learner.name, learner.params
        yield from checks.refusal(("learners", index), make_estimator, *values)


# No model is kept: it would be fitted on what clients never send.

_CLEAN = declarations.learning_system(
    "clean",
    CleanSettings,
    (_FIT, _SCORE_CLEAN),
    "clean",
    axes=(LEARNER,),
    x=EPSILON,
    study_messages=(describe_records,),
    checks=(checks.check_test_clients, _check_learners),
    normalize=checks.expand_published,
)


_SCORE_FUNCTIONAL = declarations.score_stage(
    f"{_STAGES}:score_functional",
    ("ingest", "project"),
    axes=(),
    params=declarations.ROLE_PARAMS,
    beside=(study.CONFUSION,),
    libraries=("scikit-fda",),
)
_FUNCTIONAL = declarations.learning_system(
    "functional",
    FunctionalSettings,
    (_SCORE_FUNCTIONAL,),
    "functional_knn functional_depth functional_logistic",
    axes=(),
    x=EPSILON,
    study_messages=(partial(describe_records, record="the whole curve"),),
)

SYSTEMS: Final = (SYSTEM, _CLEAN, _FUNCTIONAL)
