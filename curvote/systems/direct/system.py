"""Systems of noised vectors: `direct` and its variants, and gradient descent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Final, Literal

from pydantic import Field

from curvote.base.errors import Problem
from curvote.chain.axis import PipelineSettings
from curvote.chain.measure import Look, Method
from curvote.chain.settings import Strict, WholeNumber
from curvote.chain.stage import VECTOR, Table
from curvote.chain.system import System
from curvote.messages.measures import ERRORS, MAJORITY
from curvote.systems.common import checks, models
from curvote.systems.common.declarations import (
    COMMON_STAGES,
    EPSILON_AXES,
    ROLE_PARAMS,
    SECTIONS,
    client_stage,
    release_stage,
    score_stage,
    server_stage,
)
from curvote.systems.common.settings import Shared
from curvote.systems.common.study import CONFUSION
from curvote.systems.common.tables import CLASSIFIER, DIRECTIONS, WHITENING
from curvote.systems.direct import choice
from curvote.systems.direct.messages import MESSAGES_BY_SYSTEM, ONE_OF_ARM
from curvote.systems.references.messages import ComparisonLabel

_STAGES: Final = "curvote.systems.direct.stages"


class Direct(Strict):
    """Arm of protocol ``direct``, and the constant beside z.

    ``auto`` takes the arm that N, d and epsilon call for; ``intercept`` is public.
    ``gate`` lets the server name the majority where the rule that it decoded gains
    nothing (`curvote.learning.fallback`); protocol `auto` always does.
    """

    arm: Literal["auto", "mean", "joint", "two", "one_of"] = "auto"
    intercept: Literal["auto"] | Annotated[float, Field(gt=0)] = "auto"
    gate: bool = False


class Volunteers(Strict):
    """Whether records of volunteers are joined with the reports."""

    labels: bool = False


class Settings(Shared):
    """Settings of noised directions; ``liars`` is the share that may lie."""

    direct: Direct = Direct()
    volunteers: Volunteers = Volunteers()
    liars: Annotated[float, Field(ge=0, lt=0.5)] = 0.0


TERM_PARAMS = ("direct.arm", "direct.intercept")
JUDGED_BY_Z = {"project.judge": "rescaled"}  # it learns from z

PRIVATIZE = client_stage(
    "privatize", f"{_STAGES}:privatize", DIRECTIONS, params=TERM_PARAMS
)
RELEASE = release_stage(
    PRIVATIZE, "report", ("ingest", "project"), (*TERM_PARAMS, "project.judge")
)
AGGREGATE = server_stage(
    "aggregate",
    f"{_STAGES}:aggregate",
    ("privatize",),
    CLASSIFIER,
    params=("direct.gate",),
)
SCORE = score_stage(
    f"{_STAGES}:score",
    ("project", "aggregate"),
    EPSILON_AXES,
    ("epsilon", "direct.arm", *ROLE_PARAMS),
    beside=(CONFUSION,),
)

_MEAN = Method(
    "mean",
    "direct, mean",
    "Every client reports one noised direction, label times record; the mean of "
    "all is the classifier.",
    Look("#d55e00", "o", width=2.6, size=6.5, above=6),
    rank=90,
)
_JOINT = Method(
    "joint",
    "direct, joint",
    "The same, but a part of each report tells the second moment, which corrects "
    "the mean.",
    Look("#d55e00", "h", width=2.6, size=6.5, above=6),
    rank=100,
)


SYSTEM = System(
    name="direct",
    settings=Settings,
    stages=(*COMMON_STAGES, PRIVATIZE, AGGREGATE, SCORE),
    production=(*COMMON_STAGES, RELEASE, AGGREGATE),
    messages=MESSAGES_BY_SYSTEM["direct"],
    study_messages=(ComparisonLabel().describe,),
    metrics=ERRORS,
    methods=(_MEAN, _JOINT, MAJORITY),
    main=("mean", "joint"),
    checks=checks.combine_checks(
        checks.check_test_clients,
        choice.check_choice,
        classes=checks.check_many_classes,
    ),
    resolve_parts=choice.resolve_choice,
    shorthand=("arm", "intercept"),
    implied_settings=JUDGED_BY_Z,
    final_model=models.decoded_model,
    production_metrics=models.count_reports,
    sections=SECTIONS,
)


# Two rounds: the first whitens the second.
_PRIVATIZE_FIRST = replace(PRIVATIZE, module=f"{_STAGES}:privatize_first")
_WHITEN = server_stage("whiten", f"{_STAGES}:whiten", ("privatize",), WHITENING)
_REFINE = client_stage(
    "refine", f"{_STAGES}:refine", DIRECTIONS, ("project", "whiten"), params=TERM_PARAMS
)
_RELEASE_SECOND = release_stage(
    _REFINE, "refinement", ("ingest", "privatize", "whiten")
)
_COMBINE = replace(
    AGGREGATE, module=f"{_STAGES}:combine", inputs=("privatize", "whiten", "refine")
)
_TWO = Method(
    "two",
    "direct, two rounds",
    "The first clients' reports centre and whiten what the others report.",
    Look("#d55e00", "8", width=2.6, size=6.5, above=6),
    rank=110,
)

_DIRECT_TWO = replace(
    SYSTEM,
    name="direct_two",
    stages=(*COMMON_STAGES, _PRIVATIZE_FIRST, _WHITEN, _REFINE, _COMBINE, SCORE),
    production=(*COMMON_STAGES, RELEASE, _WHITEN, _RELEASE_SECOND, _COMBINE),
    messages=MESSAGES_BY_SYSTEM["direct_two"],
    methods=(_TWO, MAJORITY),
    main=("two",),
    shorthand=(),
)


# 1-of-K answers, then a mean for each class.
NAMED_DIRECTIONS: Final = Table(
    "named_directions", {"named": "int64", "direction": VECTOR}, unit="message"
)
_PRIVATIZE_ONE_OF = replace(
    PRIVATIZE, module=f"{_STAGES}:privatize_one_of", tables=(NAMED_DIRECTIONS,)
)
_RELEASE_ONE_OF = replace(RELEASE, tables=(NAMED_DIRECTIONS,))
_COMBINE_ONE_OF = replace(AGGREGATE, module=f"{_STAGES}:combine_one_of")
_ONE_OF = Method(
    ONE_OF_ARM,
    "direct, 1 of K",
    "Every client names one of the classes and a direction, both noised together; "
    "their mean for each class is the classifier.",
    Look("#d55e00", "p", width=2.6, size=6.5, above=6),
    rank=112,
)

_DIRECT_ONE_OF = replace(
    SYSTEM,
    name="direct_one_of",
    stages=(*COMMON_STAGES, _PRIVATIZE_ONE_OF, _COMBINE_ONE_OF, SCORE),
    production=(*COMMON_STAGES, _RELEASE_ONE_OF, _COMBINE_ONE_OF),
    messages=MESSAGES_BY_SYSTEM["direct_one_of"],
    methods=(_ONE_OF, MAJORITY),
    main=(ONE_OF_ARM,),
    shorthand=(),
)


Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Sgd(Strict):
    """Rounds, rate and clipping of protocol ``sgd``.

    ``rounds`` batches of clients, of sizes that differ by 1, are asked one after the
    other. A step is ``rate`` times the number of slopes times the mean gradient, less
    where there is more noise (`curvote.learning.directions`). Gradients are clipped to
    ``clip``, in units of a record's usual length.
    """

    rounds: WholeNumber = 4
    rate: Positive = 5.0
    clip: Positive = 0.2


class SgdSettings(Shared):
    """Settings of gradient descent, one gradient a client."""

    sgd: Sgd = Sgd()


GRADIENTS: Final = Table(
    "gradients", {"round": "int64", "gradient": VECTOR}, unit="message"
)


_DESCEND = client_stage(
    "descend",
    f"{_STAGES}:descend",
    GRADIENTS,
    params=("sgd.clip", "sgd.rate", "sgd.rounds"),
)
_AGGREGATE_GRADIENTS = server_stage(
    "aggregate",
    f"{_STAGES}:aggregate_gradients",
    ("descend",),
    CLASSIFIER,
    params=("sgd.rate",),
)
_SCORE_GRADIENTS = score_stage(
    f"{_STAGES}:score_gradients",
    ("project", "aggregate"),
    params=("epsilon", *ROLE_PARAMS),
    beside=(CONFUSION,),
)


def _check_round_count(pipeline: PipelineSettings) -> Iterator[Problem]:
    senders = pipeline.clients.train + pipeline.clients.vote
    if pipeline.sgd.rounds > senders:
        message = f"more rounds than the {senders} clients who are asked once each."
        yield Problem(message, ("sgd", "rounds"))


_SGD_METHOD = Method(
    "sgd",
    "sgd",
    "Batch after batch of clients, each once, reports one clipped gradient of the "
    "logistic loss; the server descends along their means.",
    Look("#8c6bb1", "v", width=1.3),
    rank=131,
)


_SGD = System(
    name="sgd",
    settings=SgdSettings,
    stages=(*COMMON_STAGES, _DESCEND, _AGGREGATE_GRADIENTS, _SCORE_GRADIENTS),
    messages=MESSAGES_BY_SYSTEM["sgd"],
    study_messages=(ComparisonLabel().describe,),
    metrics=ERRORS,
    methods=(_SGD_METHOD, MAJORITY),
    main=("sgd",),
    checks=checks.combine_checks(
        checks.check_test_clients, _check_round_count, classes=checks.check_many_classes
    ),
    shorthand=("rounds", "rate", "clip"),
    implied_settings=JUDGED_BY_Z,
    final_model=models.decoded_model,
    production_metrics=models.count_reports,
    sections=SECTIONS,
)

SYSTEMS: Final = (SYSTEM, _DIRECT_TWO, _DIRECT_ONE_OF, _SGD)
