"""System `online`: clients who come in arrivals, one on the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from curvote.chain.axis import EPSILON, Axis
from curvote.chain.axis import PipelineSettings as Given
from curvote.chain.measure import Look, Method
from curvote.chain.system import System
from curvote.datasets.lookup import resolve_source
from curvote.errors import Problem
from curvote.protocols import checks, finals
from curvote.protocols.measures import ERRORS, LEARNER
from curvote.protocols.mrma.system import LEARN_PARAMS, PRIVATIZE, RULE_PARAMS
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
    COMMON_STAGES,
    LEARNERS,
    NONE_PASSED,
    ROLE_PARAMS,
    SECTIONS,
    client_stage,
    score_stage,
    server_stage,
)

_HERE = "curvote.protocols.online"
ARRIVAL_AXIS = Axis(
    "arrival", lambda settings: range(settings.online.arrivals), successive=True
)
_AXES = ("epsilon", "learner", "arrival")
_PREVIOUS = "update@previous"

_LEARN = server_stage(
    "learn",
    f"{_HERE}.learn",
    ("privatize", "learn@previous", _PREVIOUS),
    CANDIDATES,
    axes=_AXES,
    params=("arrival", "online.more", *LEARN_PARAMS),
    plugins=(LEARNERS,),
)
_EVALUATE = client_stage(
    "evaluate",
    f"{_HERE}.evaluate",
    ARRIVAL_VOTES,
    ("project", "learn", _PREVIOUS),
    axes=_AXES,
    params=("arrival", "project.judge"),
)
_UPDATE = server_stage(
    "update",
    f"{_HERE}.update",
    ("learn", "evaluate", _PREVIOUS),
    STANDING,
    HISTORY,
    axes=_AXES,
    params=("arrival", "epsilon", *RULE_PARAMS, "online.memory", "online.drop"),
)
_SCORE = score_stage(
    f"{_HERE}.score",
    ("project", "update"),
    _AXES,
    ("arrival", "project.judge", *ROLE_PARAMS),
)


def _check_arrivals(pipeline: Given) -> Iterator[Problem]:
    _, source = resolve_source(pipeline.source)
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
        *COMMON_STAGES,
        replace(PRIVATIZE, module=f"{_HERE}.privatize", tables=(ARRIVING,)),
        _LEARN,
        _EVALUATE,
        _UPDATE,
        _SCORE,
    ),
    axes=(EPSILON, LEARNER, ARRIVAL_AXIS),
    messages=MESSAGES,
    metrics=ERRORS,
    methods=(_ONLINE, _FROZEN),
    main=("online",),
    checks=checks.combine_checks(*checks.LEARNING_CHECKS, _check_arrivals),
    final_model=finals.history_model,
    sections=(NONE_PASSED, *SECTIONS),
)
