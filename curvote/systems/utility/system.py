"""Systems `utility` and `utility_curves`: settings, checks, measures and stages."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from curvote.base import validate
from curvote.base.errors import Problem, UserError
from curvote.base.validate import FloatArray
from curvote.chain import axis, measure, system
from curvote.chain.settings import Epsilons, Strict, WholeNumber
from curvote.chain.stage import FILE, TEXT, VECTOR, Metadata, Stage, Table
from curvote.curves.columns import grid_names
from curvote.mechanisms.factory import mechanism_class
from curvote.messages.measures import AGREEMENT, LEARNER
from curvote.systems.common import checks as shared
from curvote.systems.common import declarations
from curvote.systems.common import models as final_models
from curvote.systems.common.models import unpack_model
from curvote.systems.common.settings import Clients, Learner, Representation
from curvote.systems.labels.metrics import ACCURACY, BALANCED

ALL: Final = "all"


@dataclass(frozen=True)
class RecordColumns:
    """Names and indices of the columns, (D,); ``sensitive`` index into these."""

    names: tuple[str, ...]
    places: tuple[int, ...]
    sensitive: tuple[int, ...]
    bounds: FloatArray

    def of(self, records: FloatArray) -> FloatArray:
        """Return the model's columns of the source's records."""
        return np.asarray(records[:, list(self.places)], dtype=np.float64)


def record_columns(metadata: Metadata, record: Mapping[str, Any]) -> RecordColumns:
    """Return the columns named by a pipeline; a wrong name is a UserError."""
    names_of_source = column_names(metadata)
    names = tuple(record["features"] or names_of_source)
    places = tuple(_column_index(names_of_source, name, "features") for name in names)
    noised = names if record["sensitive"] == ALL else tuple(record["sensitive"])
    sensitive = tuple(_column_index(names, name, "sensitive") for name in noised)
    for name in record["bounds"]:
        _column_index(noised, name, "bounds")
    bounds, features = [], metadata.get("features")
    for name in noised:
        ends = record["bounds"].get(name)
        if not ends:
            if not features:
                why = f"state the bounds of {name}: the source has no public ones."
                raise UserError(f"record: {why}", where=("record", "bounds"))
            feature = features[names_of_source.index(name)]
            ends = feature["lower"], feature["upper"]
        bounds.append(ends)
    return RecordColumns(names, places, sensitive, np.array(bounds, dtype=np.float64))


def column_names(metadata: Metadata) -> list[str]:
    """Return the names of the source's columns: features, or the grid."""
    named = [entry["name"] for entry in metadata.get("features") or ()]
    return named or grid_names(metadata["grid"], metadata.get("channels", ()))


def _column_index(names: Sequence[str], name: str, key: str) -> int:
    """Return the index of a column; an unknown name is a UserError."""
    validate.one_of(list(names), **{f"record.{key}": name})
    return list(names).index(name)


# Only code of these packages is run: a path is a text from a file.
ALLOWED_PACKAGES: Final = ("sklearn.",)


def make_classifier(spec: Mapping[str, Any], seed: int) -> Any:
    """Return the unfitted classifier of ``models``; without any a UserError.

    One that draws gets ``seed``, unless its parameters name one.
    """
    from sklearn.base import is_classifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    path = spec["path"]
    module, _, name = path.rpartition(".")
    if not path.startswith(ALLOWED_PACKAGES):
        packages = ", ".join(f"{package}..." for package in ALLOWED_PACKAGES)
        raise UserError(f"{path}: a model is named by its path, {packages}")
    try:
        kind = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        raise UserError(f"{path}: there is no such class.") from None
    try:
        model = kind(**spec["params"])
    except TypeError as error:
        raise UserError(f"{path}: {error}.") from None
    if not is_classifier(model):
        raise UserError(f"{path} is no classifier.")
    if model.get_params().get("random_state", 0) is None:
        model.set_params(random_state=seed)
    scaled = spec["scale"] == "standard"
    return make_pipeline(StandardScaler(), model) if scaled else model


def pack_arrays(arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Return arrays as a column of one uncompressed file without times."""
    buffer = BytesIO()
    np.savez(buffer, allow_pickle=False, **{n: arrays[n] for n in sorted(arrays)})
    return np.array([buffer.getvalue()], dtype=object)


def unpack_arrays(data: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of a packed file."""
    with np.load(BytesIO(data), allow_pickle=False) as read:
        return {name: read[name] for name in read.files}


# What is sent without any projection: the features themselves.
FEATURES = ""

WORST: Final = measure.Metric(
    "worst",
    "agreement of the worst {record}",
    better="higher",
    figure=False,
    words="Least agreement among the {record}s",
)
BOUND: Final = measure.Metric(
    "bound",
    "lower bound on agreement",
    better="higher",
    figure=False,
    words="Chance that the noise stays in a box in which the answer never changes",
)
METRICS: Final = (AGREEMENT, WORST, BOUND, ACCURACY, BALANCED)

RECOMMENDED: Final = measure.Method(
    "recommended",
    "recommended",
    "What does best on one half of the records, measured on the other half.",
    measure.Look("#0072b2", "o", width=2.4, size=6, above=6),
    rank=900,
)
EQUAL: Final = measure.Method(
    "equal split",
    "equal split",
    "The first mechanism of the pipeline on each feature, with an equal share.",
    measure.Look("#d55e00", "s"),
    rank=901,
)
VECTOR_METHOD: Final = measure.Method(
    "jointly",
    "jointly",
    "The first mechanism of the pipeline that takes a record as a whole.",
    measure.Look("#009e73", "^"),
    rank=902,
)
OUTPUT: Final = measure.Method(
    "output",
    "own answer",
    "The client runs the model and randomises its answer.",
    measure.Look("#7f52a3", "D", "--"),
    rank=903,
)
_floor = partial(measure.Method, reference=True, free=True)
WITHHOLD: Final = _floor(
    "withhold",
    "nothing sent",
    "A public value stands in the place of each sensitive feature: epsilon 0.",
    measure.Look("#22262b", "", (0, (1, 2)), width=1.6, above=2),
    rank=990,
)
DECODED: Final = _floor(
    "withhold decoded",
    "nothing, decoded",
    "The likeliest answer given the other features and public records: epsilon 0.",
    measure.Look("#56616c", "", (0, (4, 2)), width=1.4, above=2),
    rank=991,
)
WITHOUT: Final = _floor(
    "without",
    "trained without",
    "A model trained without the sensitive features: epsilon 0.",
    measure.Look("#8a6d3b", "", (0, (6, 2, 1, 2)), width=1.4, above=2),
    rank=992,
)
CLEAN: Final = measure.Method(
    "clean answers",
    "answers without noise",
    "The model on records without noise: no privacy.",
    measure.Look("#9aa3ad", "", "-", width=1.2, above=2),
    rank=993,
    reference=True,
)
FLOORS: Final = (WITHHOLD, DECODED, WITHOUT)
METHODS: Final = (RECOMMENDED, EQUAL, VECTOR_METHOD, OUTPUT, *FLOORS, CLEAN)


_STUDY: Final = "client (study)"
MODEL: Final = Table("estimator", {"model": FILE}, side=_STUDY, unit="classifier")
# What an engine knows of the model around each record, in one file.
PROFILES: Final = Table("known", {"known": FILE}, side=_STUDY, unit="record")
# One row a deployment; the vectors have an entry for each record.
AGREED: Final = Table(
    "agreed",
    {
        **dict.fromkeys(("deployment", "words", "evidence"), TEXT),
        "drawn": "int64",
        "bounded": "bool",
        **dict.fromkeys(
            ("agreement", "lower", "upper", "bound", "right", "queries"), VECTOR
        ),
    },
    side=_STUDY,
    unit="score",
)
RECOMMENDED_TABLE: Final = Table(
    "recommended",
    dict.fromkeys(("deployment", "words", "reason", "reaches"), TEXT),
    side=_STUDY,
    unit="score",
)


Share = Annotated[float, Field(gt=0, lt=1)]


class Record(Strict):
    """What the model reads of a record, and which of it is sensitive."""

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
        if isinstance(value, str):
            value = {"path": value}
        if isinstance(value, dict) and "path" in value and "label" not in value:
            value = value | {"label": str(value["path"]).rpartition(".")[2]}
        return value


class Deployments(Strict):
    """What may be sent, and how it may be read."""

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


def check_settings(pipeline: axis.PipelineSettings) -> Problems:
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


def check_study(pipeline: axis.PipelineSettings) -> Problems:
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


def check_deployments(pipeline: axis.PipelineSettings) -> Problems:
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


def model_notes(views: Sequence[system.View]) -> Iterator[str]:
    """Yield a note on each model's engine, and on constant answers."""
    models = {str(view.cell["learner"]): view for view in views}
    for name, view in models.items():
        stored = unpack_arrays(view.columns("surface", "known")["known"][0])
        engine, why = (str(stored[f"{FEATURES}/{key}"]) for key in ("engine", "why"))
        reason = f" ({why.rstrip('.')})" if why else ""
        yield f"{name}: read by the engine {engine.replace('_', ' ')}{reason}."
        if len(np.unique(stored[f"{FEATURES}/clean"])) == 1:
            # How often the one answer is the label.
            rows = view.read("surface", measure.SCORES.name)
            mask = (rows["method"] == CLEAN.name) & (rows["metric"] == ACCURACY.name)
            rate = float(rows.loc[mask & rows["group"].isna(), "value"].iloc[0])
            yield (
                f"{name} gives every record the same answer, right for {rate:.1%} of"
                " them: agreement is 1 or nearly, and means nothing. Balance its"
                " classes, or take another model."
            )


def final_model(view: system.View) -> RecordClassifier:
    """Return the model of the first repetition, of the source's own columns."""
    from curvote.systems.utility.model import RecordClassifier  # scikit-learn

    facts = view.metadata("ingest")
    model = unpack_model(view.columns("fit", "estimator")["model"][0])
    places = list(record_columns(facts, view.setting("record")).places)
    names = final_models.record_columns(view, "ingest")
    return RecordClassifier(names, places, model, list(facts["classes"]))


def final_rule(view: system.View) -> CurveClassifier:
    """Return the rule on coefficients of the first repetition, as one of raw curves."""
    model = unpack_model(view.columns("fit", "estimator")["model"][0])
    return final_models.linear_model(view, (model.weights, float(model.intercept)))


_STAGES: Final = "curvote.systems.utility.stages"
LIBRARIES: Final = ("scikit-learn", "scipy", "skops")
# Which engine reads a model is the model's matter.
ENGINES: Final = ("curvote.systems.utility.method.engines.base:ENGINES", "")
MECHANISMS: Final = ("curvote.mechanisms.registry:MECHANISMS", "mechanism")

MECHANISM: Final = axis.Axis(
    "mechanism",
    lambda settings: settings.deployments.mechanisms,
    key="deployments.mechanisms",
)
# Who is asked about what: the records, and what is public about them.
_RECORD_SETTINGS: Final = ("record", *declarations.ROLE_PARAMS)
_PROJECTION_SETTINGS: Final = (
    "deployments.components",
    "deployments.directions",
    "deployments.clip",
)

_stage = partial(Stage, side=_STUDY, libraries=LIBRARIES, block=1)
FIT = _stage(
    "fit",
    f"{_STAGES}:fit",
    inputs=("ingest",),
    axes=("learner",),
    params=("learner", *_RECORD_SETTINGS),
    tables=(MODEL,),
)
SURFACE = _stage(
    "surface",
    f"{_STAGES}:surface",
    inputs=("ingest", "fit"),
    axes=("learner",),
    params=(*_PROJECTION_SETTINGS, *_RECORD_SETTINGS),
    plugins=(ENGINES,),
    tables=(PROFILES, measure.SCORES),
)
AGREE = _stage(
    "agree",
    f"{_STAGES}:agree",
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
    f"{_STAGES}:report",
    inputs=("ingest", "fit", "surface", "agree@mechanism"),
    axes=("epsilon", "learner"),
    params=(
        *("epsilon", "deployments.client_side", "deployments.target"),
        *(*_PROJECTION_SETTINGS, *_RECORD_SETTINGS),
    ),
    plugins=(ENGINES,),
    tables=(measure.SCORES, RECOMMENDED_TABLE),
)
UTILITY_SECTIONS: Final = (
    "curvote.systems.utility.page:gather_recommendations",
    "curvote.systems.utility.page:gather_deployments",
)

SYSTEM = system.System(
    name="utility",
    settings=Settings,
    stages=(declarations.INGEST, FIT, SURFACE, AGREE, REPORT),
    axes=(axis.EPSILON, LEARNER, MECHANISM),
    audit_tasks=lambda settings, read: (),
    metrics=METRICS,
    methods=METHODS,
    main=(RECOMMENDED.name,),
    checks=check_settings,
    final_model=final_model,
    notes=model_notes,
    sections=(declarations.DATA_SET, *UTILITY_SECTIONS),
)


class CurveSettings(Strict):
    """What a quantification of noised coefficients reads."""

    clients: Clients
    project: Representation
    epsilon: Epsilons
    learners: list[Learner] = []
    deployments: Deployments = Deployments()


def check_curve_settings(pipeline: axis.PipelineSettings) -> Problems:
    """Yield the problems of roles, encoding, learners and mechanisms."""
    every = (
        shared.check_roles,
        shared.check_two_classes,
        shared.check_test_clients,
        shared.check_representation,
        shared.check_learners,
        check_study,
        check_deployments,
    )
    for check in every:
        yield from check(pipeline)
    for key in ("components", "directions"):
        if getattr(pipeline.deployments, key):
            message = "coefficients are few already: send them, or fewer of the basis."
            yield Problem(message, ("deployments", key))
    if "retrain" in pipeline.deployments.reads:
        message = "a rule on coefficients is not fitted again: read raw or decode."
        yield Problem(message, ("deployments", "reads"))


def _on_coefficients(stage: Stage) -> Stage:
    """Return a stage that reads coefficients where others read features."""
    inputs = ("project", *stage.inputs[1:])
    params = tuple(name for name in stage.params if name != "record")
    return replace(stage, inputs=inputs, params=params)


_FIT_CURVES = replace(
    FIT,
    module=f"{_STAGES}:fit_curves",
    inputs=("project",),
    params=("learner", *declarations.ROLE_PARAMS),
    plugins=(declarations.LEARNERS,),
    block=0,
)

_CURVES = replace(
    SYSTEM,
    name="utility_curves",
    settings=CurveSettings,
    stages=(
        declarations.INGEST,
        declarations.PROJECT,
        _FIT_CURVES,
        *map(_on_coefficients, (SURFACE, AGREE, REPORT)),
    ),
    checks=check_curve_settings,
    final_model=final_rule,
    sections=(*declarations.SECTIONS, *UTILITY_SECTIONS),
)

SYSTEMS: Final = (SYSTEM, _CURVES)
