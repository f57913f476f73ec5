"""`online` as data: a study of clients who come in arrivals, one on the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from curvote.chain.axis import EPSILON, Axis
from curvote.chain.axis import Settings as Given
from curvote.chain.measure import Look, Method
from curvote.chain.system import System
from curvote.datasets.lookup import chosen
from curvote.errors import Problem
from curvote.protocols import checks, finals
from curvote.protocols.measures import ERRORS, LEARNER
from curvote.protocols.mrma.system import LEARN, PRIVATIZE, RULE
from curvote.protocols.online.messages import MESSAGES
from curvote.protocols.online.settings import Settings
from curvote.protocols.online.tables import (
    ARRIVAL_VOTES,
    ARRIVING,
    CANDIDATES,
    HISTORY,
    STANDING,
)
from curvote.protocols.stages.declared import (
    COMMON,
    LEARNERS,
    NONE_PASSED,
    ROLES,
    SECTIONS,
    drawn,
    scored,
    served,
)

_HERE = "curvote.protocols.online"
ARRIVAL = Axis(
    "arrival", lambda settings: range(settings.online.arrivals), successive=True
)
_AXES = ("epsilon", "learner", "arrival")
_PREVIOUS = "update@previous"

_LEARN = served(
    "learn",
    f"{_HERE}.learn",
    ("privatize", "learn@previous", _PREVIOUS),
    CANDIDATES,
    axes=_AXES,
    params=("arrival", "online.more", *LEARN),
    plugins=(LEARNERS,),
)
_EVALUATE = drawn(
    "evaluate",
    f"{_HERE}.evaluate",
    ARRIVAL_VOTES,
    ("project", "learn", _PREVIOUS),
    axes=_AXES,
    params=("arrival", "project.judge"),
)
_UPDATE = served(
    "update",
    f"{_HERE}.update",
    ("learn", "evaluate", _PREVIOUS),
    STANDING,
    HISTORY,
    axes=_AXES,
    params=("arrival", "epsilon", *RULE, "online.memory", "online.drop"),
)
_SCORE = scored(
    f"{_HERE}.score", ("project", "update"), _AXES, ("arrival", "project.judge", *ROLES)
)


def _arriving(pipeline: Given) -> Iterator[Problem]:
    _, source = chosen(pipeline.source)
    periods = getattr(source, "periods", 0)
    if not periods:
        yield Problem("online takes a source whose clients arrive.", ("protocol",))
    elif pipeline.online.arrivals > periods:
        message = f"the source has {periods} periods only."
        yield Problem(message, ("online", "arrivals"))
    elif pipeline.train and pipeline.train.size > pipeline.clients.train // periods:
        message = "more reports a learner than train in one arrival."
        yield Problem(message, ("train", "size"))


_ONLINE = Method(
    "online",
    "online",
    "MRMA kept up to date with the votes of clients who came later.",
    Look("#d55e00", "o", width=2.6, size=6.5, above=6),
    rank=60,
)
_FROZEN = Method(
    "frozen",
    "frozen",
    "MRMA as it was after the first arrival.",
    Look("#838b94", "v", "--", size=5),
    rank=70,
)


SYSTEM = System(
    name="online",
    settings=Settings,
    stages=(
        *COMMON,
        replace(PRIVATIZE, module=f"{_HERE}.privatize", tables=(ARRIVING,)),
        _LEARN,
        _EVALUATE,
        _UPDATE,
        _SCORE,
    ),
    axes=(EPSILON, LEARNER, ARRIVAL),
    messages=MESSAGES,
    metrics=ERRORS,
    methods=(_ONLINE, _FROZEN),
    main=("online",),
    checks=checks.every(*checks.LEARNING, _arriving),
    final=finals.history,
    sections=(NONE_PASSED, *SECTIONS),
)
