"""The quantification before collection as data: models, mechanisms, deployments.

Nobody releases anything: there is no message, and no production.
"""

from __future__ import annotations

from typing import Final

from curvote.chain.axis import EPSILON, Axis
from curvote.chain.measure import SCORES
from curvote.chain.stage import Stage
from curvote.chain.system import System
from curvote.protocols.measures import LEARNER
from curvote.protocols.stages.declared import DATA_SET, INGEST, ROLES
from curvote.protocols.utility.checks import checks
from curvote.protocols.utility.final import final
from curvote.protocols.utility.methods import METHODS, METRICS, RECOMMENDED
from curvote.protocols.utility.notes import notes
from curvote.protocols.utility.settings import Settings as Own
from curvote.protocols.utility.tables import AGREED, KNOWN, MODEL
from curvote.protocols.utility.tables import RECOMMENDED as CHOSEN

_HERE: Final = "curvote.protocols.utility.stages"
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
_WHO: Final = ("record", *ROLES)
_SENT: Final = (
    "deployments.components",
    "deployments.directions",
    "deployments.clip",
)

FIT = Stage(
    "fit",
    f"{_HERE}.fit",
    inputs=("ingest",),
    axes=("learner",),
    params=("learner", *_WHO),
    tables=(MODEL,),
    side=_SIDE,
    libraries=LIBRARIES,
    block=1,
)
SURFACE = Stage(
    "surface",
    f"{_HERE}.surface",
    inputs=("ingest", "fit"),
    axes=("learner",),
    params=(*_SENT, *_WHO),
    plugins=(ENGINES,),
    tables=(KNOWN, SCORES),
    side=_SIDE,
    libraries=LIBRARIES,
    block=1,
)
AGREE = Stage(
    "agree",
    f"{_HERE}.agree",
    inputs=("ingest", "fit", "surface"),
    axes=("epsilon", "learner", "mechanism"),
    params=(
        *("epsilon", "mechanism", "deployments.reads", "deployments.params"),
        *("deployments.draws", *_SENT, *_WHO),
    ),
    plugins=(MECHANISMS, ENGINES),
    tables=(AGREED,),
    side=_SIDE,
    libraries=LIBRARIES,
    block=1,
)
REPORT = Stage(
    "report",
    f"{_HERE}.report",
    inputs=("ingest", "fit", "surface", "agree@mechanism"),
    axes=("epsilon", "learner"),
    params=(
        *("epsilon", "deployments.client_side", "deployments.target"),
        *_SENT,
        *_WHO,
    ),
    plugins=(ENGINES,),
    tables=(SCORES, CHOSEN),
    side=_SIDE,
    libraries=LIBRARIES,
    block=1,
)
_PAGE: Final = "curvote.reporting.sections.utility"
OWN_SECTIONS: Final = tuple(f"{_PAGE}.{name}" for name in ("chosen", "deployed"))

SYSTEM = System(
    name="utility",
    settings=Own,
    stages=(INGEST, FIT, SURFACE, AGREE, REPORT),
    axes=(EPSILON, LEARNER, MECHANISM),
    asked=lambda settings, read: (),
    metrics=METRICS,
    methods=METHODS,
    main=(RECOMMENDED.name,),
    checks=checks,
    final=final,
    notes=notes,
    sections=(DATA_SET, *OWN_SECTIONS),
)
