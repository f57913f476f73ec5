"""System `online`: clients who come in arrivals, one on the next."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Final

from pydantic import Field

from curvote.base.errors import Problem
from curvote.chain import axis, stage
from curvote.chain.settings import WholeNumber
from curvote.data.lookup import resolve_source
from curvote.messages.measures import LEARNER
from curvote.systems.common import checks, declarations, models
from curvote.systems.common.settings import Aggregate, Privatize, Taught
from curvote.systems.common.tables import VOTES
from curvote.systems.mrma.system import LEARN_PARAMS, PRIVATIZE, RULE_PARAMS, Watch

_STAGES = "curvote.systems.online.stages"


class Online(Watch):
    """Arrivals of clients, and what their votes change."""

    arrivals: WholeNumber = 1
    memory: Annotated[float, Field(gt=0, le=1)] = 1.0
    more: WholeNumber = 20


class Settings(Taught):
    """Settings of MRMA for clients who keep coming."""

    privatize: Privatize = Privatize()
    aggregate: Aggregate = Aggregate()
    online: Online = Online()


ARRIVING: Final = stage.Table(
    "arriving", {"arrival": "int64", "z": stage.VECTOR, "label": "int8"}, unit="message"
)
CANDIDATES: Final = stage.Table(
    "candidates",
    {
        "learner": "int64",
        "coef": stage.VECTOR,
        "intercept": "float64",
        "birth": "int64",
        "n": "int64",
        "flagged": "bool",
    },
    unit="classifier",
)
ARRIVAL_VOTES: Final = stage.Table("arrival_votes", VOTES.columns, unit="classifier")
STANDINGS: Final = stage.Table(
    "standing",
    {
        **dict.fromkeys(("arrival", "learner"), "int64"),
        **dict.fromkeys(("n", "positive", "squares"), "float64"),
        **dict.fromkeys(("utility", "standard_error"), "float64"),
        "reversed": "bool",
        "weight": "float64",
    },
    unit="classifier",
)
HISTORY: Final = stage.Table(
    "history",
    {
        **dict.fromkeys(("arrival", "votes", "added"), "int64"),
        **dict.fromkeys(("incumbent_n", "incumbent_positive"), "int64"),
        **dict.fromkeys(("utility", "standard_error"), "float64"),
        "dropped": "bool",
        "passed": "int64",
        "none_passed": "bool",
        "coef": stage.VECTOR,
        "intercept": "float64",
    },
    unit="arrival",
)


ARRIVAL_AXIS = axis.Axis(
    "arrival", lambda settings: range(settings.online.arrivals), successive=True
)
_AXES = ("epsilon", "learner", "arrival")
_PREVIOUS = "update@previous"

_LEARN = declarations.server_stage(
    "learn",
    _STAGES,
    ("privatize", "learn@previous", _PREVIOUS),
    CANDIDATES,
    axes=_AXES,
    params=("arrival", "online.more", *LEARN_PARAMS),
    plugins=(declarations.LEARNERS,),
)
_EVALUATE = declarations.client_stage(
    "evaluate",
    _STAGES,
    ARRIVAL_VOTES,
    ("project", "learn", _PREVIOUS),
    axes=_AXES,
    params=("arrival", "project.judge"),
)
_UPDATE = declarations.server_stage(
    "update",
    _STAGES,
    ("learn", "evaluate", _PREVIOUS),
    STANDINGS,
    HISTORY,
    axes=_AXES,
    params=("arrival", "epsilon", *RULE_PARAMS, "online.memory", "online.error"),
)
_SCORE = declarations.score_stage(
    f"{_STAGES}:score",
    ("project", "update"),
    _AXES,
    ("arrival", "project.judge", *declarations.ROLE_PARAMS),
)


def _check_arrivals(pipeline: axis.PipelineSettings) -> Iterator[Problem]:
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


SYSTEM = declarations.learning_system(
    "online",
    Settings,
    (
        replace(PRIVATIZE, module=f"{_STAGES}:privatize", tables=(ARRIVING,)),
        _LEARN,
        _EVALUATE,
        _UPDATE,
        _SCORE,
    ),
    "online frozen",
    axes=(axis.EPSILON, LEARNER, ARRIVAL_AXIS),
    checks=(*checks.LEARNING_CHECKS, _check_arrivals),
    classes=checks.check_two_classes,
    final_model=models.history_model,
    sections=(declarations.NONE_PASSED, *declarations.SECTIONS),
)
