"""System `utility` as data: models, mechanisms, deployments.

Nobody releases anything: there is no message, and no production.
"""

from __future__ import annotations

from typing import Final

from curvote.chain.axis import EPSILON, Axis
from curvote.chain.measure import SCORES
from curvote.chain.stage import Stage
from curvote.chain.system import System
from curvote.protocols.measures import LEARNER
from curvote.protocols.stages.declared import DATA_SET, INGEST, ROLE_PARAMS
from curvote.protocols.utility.checks import check_settings
from curvote.protocols.utility.final import final_model
from curvote.protocols.utility.methods import METHODS, METRICS, RECOMMENDED
from curvote.protocols.utility.notes import model_notes
from curvote.protocols.utility.settings import Settings as Own
from curvote.protocols.utility.tables import AGREED, KNOWN, MODEL
from curvote.protocols.utility.tables import RECOMMENDED_TABLE as CHOSEN

_STAGES: Final = "curvote.protocols.utility.stages"
_SIDE: Final = "client (study)"
LIBRARIES: Final = ("scikit-learn", "scipy", "skops")
# Which engine reads a model is the model's matter.
ENGINES: Final = ("curvote.utility.engines.registry:ENGINES", "")
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
    f"{_STAGES}.fit",
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
    f"{_STAGES}.surface",
    inputs=("ingest", "fit"),
    axes=("learner",),
    params=(*_PROJECTION_SETTINGS, *_RECORD_SETTINGS),
    plugins=(ENGINES,),
    tables=(KNOWN, SCORES),
    side=_SIDE,
    libraries=LIBRARIES,
    block=1,
)
AGREE = Stage(
    "agree",
    f"{_STAGES}.agree",
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
    f"{_STAGES}.report",
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
_PAGE: Final = "curvote.reporting.sections.utility"
UTILITY_SECTIONS: Final = tuple(f"{_PAGE}.{name}" for name in ("chosen", "deployed"))

SYSTEM = System(
    name="utility",
    settings=Own,
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
