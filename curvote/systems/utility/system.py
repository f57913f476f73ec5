"""Notes on each model for the reader of a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from curvote.chain.axis import EPSILON, Axis
from curvote.chain.measure import SCORES
from curvote.chain.stage import Stage
from curvote.chain.system import System, View
from curvote.messages.measures import LEARNER
from curvote.systems.common.declarations import DATA_SET, INGEST, ROLE_PARAMS
from curvote.systems.common.model_file import unpack_model
from curvote.systems.common.models import linear_model, record_columns
from curvote.systems.labels.metrics import ACCURACY
from curvote.systems.utility.checks import check_settings
from curvote.systems.utility.inputs import Arrays, unpack_arrays
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
from curvote.systems.utility.settings import Settings as UtilitySettings

if TYPE_CHECKING:
    from curvote.curves.curve_classifier import CurveClassifier
    from curvote.systems.utility.model import RecordClassifier


def model_notes(views: Sequence[View]) -> Iterator[str]:
    """Yield a note on each model's engine, and on constant answers."""
    models = {str(view.cell["learner"]): view for view in views}
    for name, view in models.items():
        stored = unpack_arrays(view.columns("surface", "known")["known"][0])
        yield f"{name}: {_describe_engine(stored)}."
        if len(np.unique(stored[f"{FEATURES}/clean"])) == 1:
            yield (
                f"{name} gives every record the same answer, right for"
                f" {_base_rate(view):.1%} of them: agreement is 1 or nearly, and means"
                " nothing. Balance its classes, or take another model."
            )


def _base_rate(view: View) -> float:
    """Return the base rate: how often the one answer is the label."""
    scores = view.read("surface", SCORES.name)
    mask = (scores["method"] == CLEAN.name) & (scores["metric"] == ACCURACY.name)
    return float(scores.loc[mask & scores["group"].isna(), "value"].iloc[0])


def _describe_engine(arrays: Arrays) -> str:
    """Return the engine's name and why better ones refused."""
    engine, why = (str(arrays[f"{FEATURES}/{name}"]) for name in ("engine", "why"))
    reason = f" ({why.rstrip('.')})" if why else ""
    return f"read by the engine {engine.replace('_', ' ')}{reason}"


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

FIT = Stage(
    "fit",
    "curvote.systems.utility.stages:fit",
    inputs=("ingest",),
    axes=("learner",),
    params=("learner", *_RECORD_SETTINGS),
    tables=(MODEL,),
    side=_SIDE,
    libraries=LIBRARIES,
    block=1,
)
SURFACE = Stage(
    "surface",
    "curvote.systems.utility.stages:surface",
    inputs=("ingest", "fit"),
    axes=("learner",),
    params=(*_PROJECTION_SETTINGS, *_RECORD_SETTINGS),
    plugins=(ENGINES,),
    tables=(PROFILES, SCORES),
    side=_SIDE,
    libraries=LIBRARIES,
    block=1,
)
AGREE = Stage(
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
    side=_SIDE,
    libraries=LIBRARIES,
    block=1,
)
REPORT = Stage(
    "report",
    "curvote.systems.utility.stages:report",
    inputs=("ingest", "fit", "surface", "agree@mechanism"),
    axes=("epsilon", "learner"),
    params=(
        *("epsilon", "deployments.client_side", "deployments.target"),
        *_PROJECTION_SETTINGS,
        *_RECORD_SETTINGS,
    ),
    plugins=(ENGINES,),
    tables=(SCORES, CHOSEN),
    side=_SIDE,
    libraries=LIBRARIES,
    block=1,
)
_PAGE: Final = "curvote.systems.utility.page"
UTILITY_SECTIONS: Final = (
    f"{_PAGE}:gather_recommendations",
    f"{_PAGE}:gather_deployments",
)

SYSTEM = System(
    name="utility",
    settings=UtilitySettings,
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
