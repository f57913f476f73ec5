"""`votes` as data: public directions, one vote a client, weights."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from curvote.chain.axis import Settings as Given
from curvote.chain.measure import Look, Method
from curvote.chain.system import System
from curvote.errors import Problem
from curvote.protocols import by_class, checks, finals, outcomes
from curvote.protocols.direct.system import FIXED
from curvote.protocols.majority.messages import Compared
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.measures import ERRORS
from curvote.protocols.mrma.methods import BEST_SINGLE
from curvote.protocols.mrma.several import number
from curvote.protocols.mrma.tables import ENSEMBLE, VOTES, WEAK
from curvote.protocols.questions import splits
from curvote.protocols.stages.declared import (
    COMMON,
    ROLES,
    SECTIONS,
    UTILITIES,
    drawn,
    released,
    scored,
    served,
)
from curvote.protocols.votes.messages import MESSAGES
from curvote.protocols.votes.settings import Settings

_HERE = "curvote.protocols.votes"

# No client has a part in it: every epsilon shares the directions.
_TRAIN = served(
    "train",
    f"{_HERE}.train",
    ("project",),
    WEAK,
    axes=(),
    params=("votes.directions", "direct.intercept", "seed"),
)
_EVALUATE = drawn("evaluate", f"{_HERE}.evaluate", VOTES, ("project", "train"))
_RELEASE = released(
    _EVALUATE, "vote", ("ingest", "project", "train"), ("project.judge",)
)
_AGGREGATE = served("aggregate", f"{_HERE}.aggregate", ("evaluate",), ENSEMBLE)
_SCORE = scored(
    f"{_HERE}.score",
    ("project", "train", "aggregate"),
    params=("epsilon", *ROLES),
    beside=(by_class.CONFUSION,),
)


def _enough(pipeline: Given) -> Iterator[Problem]:
    yield from checks.many(pipeline)
    voters = pipeline.clients.train + pipeline.clients.vote
    each = len(splits(number(pipeline.source)))
    if pipeline.votes.directions * each > voters:
        about = f" about each of {each} splits" if each > 1 else ""
        message = f"more directions{about} than the {voters} clients who judge them."
        yield Problem(message, ("votes", "directions"))


_VOTES = Method(
    "votes",
    "votes",
    "No client trains: random directions are judged by one noised vote of each "
    "client, reversed and averaged by their utility.",
    Look("#0072b2", "s", width=2.0),
    rank=120,
)


SYSTEM = System(
    name="votes",
    settings=Settings,
    stages=(*COMMON, _TRAIN, _EVALUATE, _AGGREGATE, _SCORE),
    production=(*COMMON, _TRAIN, _RELEASE, _AGGREGATE),
    messages=MESSAGES,
    compared=(Compared().words,),
    metrics=ERRORS,
    methods=(_VOTES, BEST_SINGLE, MAJORITY),
    main=("votes",),
    checks=checks.every(checks.tested, classes=_enough),
    short=("directions",),
    fixed=FIXED,
    final=partial(finals.ensemble, code=splits),
    outcome=outcomes.voted,
    alarm=outcomes.alarm,
    sections=(UTILITIES, *SECTIONS),
)
