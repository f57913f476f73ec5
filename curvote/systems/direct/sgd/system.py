"""System `sgd`: rounds of noised gradients, and a descent along them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

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
    ROLE_PARAMS,
    SECTIONS,
    client_stage,
    score_stage,
    server_stage,
)
from curvote.systems.common.settings import Shared
from curvote.systems.common.study import CONFUSION
from curvote.systems.common.tables import CLASSIFIER
from curvote.systems.direct.sgd.messages import MESSAGES
from curvote.systems.direct.system import JUDGED_BY_Z
from curvote.systems.references.messages import ComparisonLabel

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


class Settings(Shared):
    """Settings of gradient descent, one gradient a client."""

    sgd: Sgd = Sgd()


GRADIENTS: Final = Table(
    "gradients", {"round": "int64", "gradient": VECTOR}, unit="message"
)


_DESCEND = client_stage(
    "descend",
    "curvote.systems.direct.stages:descend",
    GRADIENTS,
    params=("sgd.clip", "sgd.rate", "sgd.rounds"),
)
_AGGREGATE = server_stage(
    "aggregate",
    "curvote.systems.direct.stages:aggregate_gradients",
    ("descend",),
    CLASSIFIER,
    params=("sgd.rate",),
)
_SCORE = score_stage(
    "curvote.systems.direct.stages:score_gradients",
    ("project", "aggregate"),
    params=("epsilon", *ROLE_PARAMS),
    beside=(CONFUSION,),
)


def _check_round_count(pipeline: PipelineSettings) -> Iterator[Problem]:
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
    stages=(*COMMON_STAGES, _DESCEND, _AGGREGATE, _SCORE),
    messages=MESSAGES,
    study_messages=(ComparisonLabel().describe,),
    metrics=ERRORS,
    methods=(_SGD, MAJORITY),
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
