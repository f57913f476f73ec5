"""`sgd` as data: rounds of noised gradients, and a descent along their means."""

from __future__ import annotations

from collections.abc import Iterator

from curvote.chain.axis import Settings as Given
from curvote.chain.measure import Look, Method
from curvote.chain.system import System
from curvote.errors import Problem
from curvote.protocols import checks, finals, outcomes
from curvote.protocols.by_class import CONFUSION
from curvote.protocols.direct.system import FIXED
from curvote.protocols.direct.tables import CLASSIFIER
from curvote.protocols.majority.messages import Compared
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.measures import ERRORS
from curvote.protocols.sgd.messages import MESSAGES
from curvote.protocols.sgd.settings import Settings
from curvote.protocols.sgd.tables import GRADIENTS
from curvote.protocols.stages.declared import (
    COMMON,
    ROLES,
    SECTIONS,
    drawn,
    scored,
    served,
)

_HERE = "curvote.protocols.sgd"

_DESCEND = drawn(
    "descend",
    f"{_HERE}.descend",
    GRADIENTS,
    params=("sgd.clip", "sgd.rate", "sgd.rounds"),
)
_AGGREGATE = served(
    "aggregate",
    f"{_HERE}.aggregate",
    ("descend",),
    CLASSIFIER,
    params=("sgd.rate",),
)
_SCORE = scored(
    f"{_HERE}.score",
    ("project", "aggregate"),
    params=("epsilon", *ROLES),
    beside=(CONFUSION,),
)


def _enough(pipeline: Given) -> Iterator[Problem]:
    senders = pipeline.clients.train + pipeline.clients.vote
    if pipeline.sgd.rounds > senders:
        message = f"more rounds than the {senders} clients who are asked once each."
        yield Problem(message, ("sgd", "rounds"))


_SGD = Method(
    "sgd",
    "sgd",
    "Batch after batch of clients, each once, reports one clipped gradient of the "
    "logistic loss; the server descends along their means.",
    Look("#8c6bb1", "v", width=1.3),
    rank=131,
)


SYSTEM = System(
    name="sgd",
    settings=Settings,
    stages=(*COMMON, _DESCEND, _AGGREGATE, _SCORE),
    messages=MESSAGES,
    compared=(Compared().words,),
    metrics=ERRORS,
    methods=(_SGD, MAJORITY),
    main=("sgd",),
    checks=checks.every(checks.tested, _enough, classes=checks.many),
    short=("rounds", "rate", "clip"),
    fixed=FIXED,
    final=finals.one,
    outcome=outcomes.reported,
    sections=SECTIONS,
)
