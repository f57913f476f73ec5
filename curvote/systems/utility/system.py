"""System `utility`: settings, their checks, stages, and notes on each model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import numpy as np
from pydantic import Field, model_validator

from curvote.base.errors import Problem, UserError
from curvote.chain.axis import EPSILON, Axis, PipelineSettings
from curvote.chain.measure import SCORES
from curvote.chain.settings import Epsilons, Strict, WholeNumber
from curvote.chain.stage import Stage
from curvote.chain.system import System, View
from curvote.mechanisms.factory import mechanism_class
from curvote.messages.measures import LEARNER
from curvote.systems.common import checks as shared
from curvote.systems.common.declarations import DATA_SET, INGEST, ROLE_PARAMS
from curvote.systems.common.models import linear_model, record_columns, unpack_model
from curvote.systems.common.settings import Clients
from curvote.systems.labels.metrics import ACCURACY
from curvote.systems.utility.inputs import make_classifier, unpack_arrays
from curvote.systems.utility.inputs import record_columns as asked_of
from curvote.systems.utility.measures import (
    AGREED,
    CLEAN,
    FEATURES,
    METHODS,
    METRICS,
    MODEL,
    PROFILES,
    RECOMMENDED,
)
from curvote.systems.utility.measures import RECOMMENDED_TABLE as CHOSEN

Share = Annotated[float, Field(gt=0, lt=1)]


class Record(Strict):
    """What the model reads of a record, and which of it is sensitive.

    All columns of the source are read where ``features`` names none. Public ``bounds``
    are those of the source where none are stated; ``group`` is a column by which
    everything is told once more, group by group.
    """

    features: list[str] = []
    sensitive: Annotated[list[str], Field(min_length=1)] | Literal["all"] = "all"
    bounds: dict[str, tuple[float, float]] = {}
    group: str | None = None


class Model(Strict):
    """A classifier of scikit-learn by its path; by itself no number is rescaled."""

    path: str
    label: str
    params: dict[str, Any] = {}
    scale: Literal["none", "standard"] = "none"

    @model_validator(mode="before")
    @classmethod
    def _add_label(cls, value: Any) -> Any:
        """Return the settings with a label, by default the class's name."""
        if isinstance(value, str):
            value = {"path": value}
        if isinstance(value, dict) and "path" in value and "label" not in value:
            value = value | {"label": str(value["path"]).rpartition(".")[2]}
        return value


class Deployments(Strict):
    """What may be sent, and how it may be read.

    ``params`` are the mechanisms' own, by mechanism. ``components`` are numbers of
    principal components of the public records, ``directions`` of those in which the
    model's answers change most on them; either is sent instead of the features.
    ``draws`` of each record stand behind what is known by drawing only. ``target`` is
    an agreement that is wanted; ``client_side`` says that clients can run the model.
    """

    mechanisms: Annotated[list[str], Field(min_length=1)] = ["pm_01", "joint_box"]
    params: dict[str, dict[str, Any]] = {}
    reads: list[Literal["raw", "decode", "retrain"]] = ["raw", "decode"]
    components: list[WholeNumber] = []
    directions: list[WholeNumber] = []
    draws: WholeNumber = 200
    target: Share | None = None
    client_side: bool = False
    clip: bool = True


class Settings(Strict):
    """What a quantification before collection reads.

    Clients who are ``public`` stand for a prior, ``train`` make the model, ``test`` are
    those whose answers are looked at.
    """

    clients: Clients
    epsilon: Epsilons
    record: Record = Record()
    models: list[Model] = []
    deployments: Deployments = Deployments()


Problems = Iterator[Problem]


def check_settings(pipeline: PipelineSettings) -> Problems:
    """Yield the problems of roles, models, mechanisms and their needs."""
    yield from shared.check_roles(pipeline)
    yield from shared.check_test_clients(pipeline)
    yield from check_study(pipeline)
    if not pipeline.models:
        yield Problem("is missing: name a classifier by its path.", ("models",))
    labels = [model.label for model in pipeline.models]
    for index, model in enumerate(pipeline.models):
        if labels.index(model.label) < index:
            message = f"two models are called {model.label}: give each a label."
            yield Problem(message, ("models", index))
        try:
            make_classifier(model.model_dump(), seed=0)
        except UserError as error:
            yield Problem(str(error), ("models", index))
    yield from check_deployments(pipeline)


def check_study(pipeline: PipelineSettings) -> Problems:
    """Yield a problem in production: agreement needs clean records.

    A figure of clean records that clients hold would be a release without a budget.
    """
    if pipeline.production:
        message = (
            "agreement is computed from clean records: a study, or public records and"
            " volunteers; nothing of it is for production."
        )
        yield Problem(message, ("mode",))
    if pipeline.intake is not None:
        yield Problem("nobody sends anything here: leave it out.", ("intake",))


def check_deployments(pipeline: PipelineSettings) -> Problems:
    """Yield the problems of mechanisms, and of public records that are missing."""
    section = pipeline.deployments
    for index, name in enumerate(section.mechanisms):
        try:
            mechanism_class(name)
        except UserError as error:
            yield Problem(str(error), ("deployments", "mechanisms", index))
    for name in section.params:
        if name not in section.mechanisms:
            message = f"{name} is none of the mechanisms."
            yield Problem(message, ("deployments", "params"))
    if not pipeline.clients.public:
        if "decode" in section.reads:
            message = "decode needs public records: give clients.public, or read raw."
            yield Problem(message, ("deployments", "reads"))
        for key in ("components", "directions"):
            if getattr(section, key):
                message = f"{key} are found on public records: give clients.public."
                yield Problem(message, ("deployments", key))


if TYPE_CHECKING:
    from curvote.curves.curve_classifier import CurveClassifier
    from curvote.systems.utility.model import RecordClassifier


def model_notes(views: Sequence[View]) -> Iterator[str]:
    """Yield a note on each model's engine, and on constant answers."""
    models = {str(view.cell["learner"]): view for view in views}
    for name, view in models.items():
        stored = unpack_arrays(view.columns("surface", "known")["known"][0])
        engine, why = (str(stored[f"{FEATURES}/{key}"]) for key in ("engine", "why"))
        reason = f" ({why.rstrip('.')})" if why else ""
        yield f"{name}: read by the engine {engine.replace('_', ' ')}{reason}."
        if len(np.unique(stored[f"{FEATURES}/clean"])) == 1:
            # How often the one answer is the label.
            rows = view.read("surface", SCORES.name)
            mask = (rows["method"] == CLEAN.name) & (rows["metric"] == ACCURACY.name)
            rate = float(rows.loc[mask & rows["group"].isna(), "value"].iloc[0])
            yield (
                f"{name} gives every record the same answer, right for {rate:.1%} of"
                " them: agreement is 1 or nearly, and means nothing. Balance its"
                " classes, or take another model."
            )


def final_model(view: View) -> RecordClassifier:
    """Return the model of the first repetition, of the source's own columns."""
    from curvote.systems.utility.model import RecordClassifier  # scikit-learn

    facts = view.metadata("ingest")
    model = unpack_model(view.columns("fit", "estimator")["model"][0])
    places = list(asked_of(facts, view.setting("record")).places)
    names = record_columns(view, "ingest")
    return RecordClassifier(names, places, model, list(facts["classes"]))


def final_rule(view: View) -> CurveClassifier:
    """Return the rule on coefficients of the first repetition, as one of raw curves."""
    model = unpack_model(view.columns("fit", "estimator")["model"][0])
    return linear_model(view, (model.weights, float(model.intercept)))


_STAGES: Final = "curvote.systems.utility"
_SIDE: Final = "client (study)"
LIBRARIES: Final = ("scikit-learn", "scipy", "skops")
# Which engine reads a model is the model's matter.
ENGINES: Final = ("curvote.systems.utility.method.engines.base:ENGINES", "")
MECHANISMS: Final = ("curvote.mechanisms.registry:MECHANISMS", "mechanism")

MECHANISM: Final = Axis(
    "mechanism",
    lambda settings: settings.deployments.mechanisms,
    key="deployments.mechanisms",
)
# Who is asked about what: the records, and what is public about them.
_RECORD_SETTINGS: Final = ("record", *ROLE_PARAMS)
_PROJECTION_SETTINGS: Final = (
    "deployments.components",
    "deployments.directions",
    "deployments.clip",
)

_stage = partial(Stage, side=_SIDE, libraries=LIBRARIES, block=1)
FIT = _stage(
    "fit",
    "curvote.systems.utility.stages:fit",
    inputs=("ingest",),
    axes=("learner",),
    params=("learner", *_RECORD_SETTINGS),
    tables=(MODEL,),
)
SURFACE = _stage(
    "surface",
    "curvote.systems.utility.stages:surface",
    inputs=("ingest", "fit"),
    axes=("learner",),
    params=(*_PROJECTION_SETTINGS, *_RECORD_SETTINGS),
    plugins=(ENGINES,),
    tables=(PROFILES, SCORES),
)
AGREE = _stage(
    "agree",
    "curvote.systems.utility.stages:agree",
    inputs=("ingest", "fit", "surface"),
    axes=("epsilon", "learner", "mechanism"),
    params=(
        *("epsilon", "mechanism", "deployments.reads", "deployments.params"),
        *("deployments.draws", *_PROJECTION_SETTINGS, *_RECORD_SETTINGS),
    ),
    plugins=(MECHANISMS, ENGINES),
    tables=(AGREED,),
)
REPORT = _stage(
    "report",
    "curvote.systems.utility.stages:report",
    inputs=("ingest", "fit", "surface", "agree@mechanism"),
    axes=("epsilon", "learner"),
    params=(
        *("epsilon", "deployments.client_side", "deployments.target"),
        *(*_PROJECTION_SETTINGS, *_RECORD_SETTINGS),
    ),
    plugins=(ENGINES,),
    tables=(SCORES, CHOSEN),
)
UTILITY_SECTIONS: Final = (
    "curvote.systems.utility.page:gather_recommendations",
    "curvote.systems.utility.page:gather_deployments",
)

SYSTEM = System(
    name="utility",
    settings=Settings,
    stages=(INGEST, FIT, SURFACE, AGREE, REPORT),
    axes=(EPSILON, LEARNER, MECHANISM),
    audit_tasks=lambda settings, read: (),
    metrics=METRICS,
    methods=METHODS,
    main=(RECOMMENDED.name,),
    checks=check_settings,
    final_model=final_model,
    notes=model_notes,
    sections=(DATA_SET, *UTILITY_SECTIONS),
)
