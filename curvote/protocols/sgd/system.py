"""System `sgd`: rounds of noised gradients, and a descent along them."""

from __future__ import annotations

from collections.abc import Iterator

from curvote.chain.axis import PipelineSettings as Given
from curvote.chain.measure import Look, Method
from curvote.chain.system import System
from curvote.errors import Problem
from curvote.protocols import checks, finals, outcomes
from curvote.protocols.by_class import CONFUSION
from curvote.protocols.direct.system import JUDGED_BY_Z
from curvote.protocols.direct.tables import CLASSIFIER
from curvote.protocols.majority.messages import ComparisonLabel
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.measures import ERRORS
from curvote.protocols.sgd.messages import MESSAGES
from curvote.protocols.sgd.settings import Settings
from curvote.protocols.sgd.tables import GRADIENTS
from curvote.protocols.stages.declared import (
    COMMON_STAGES,
    ROLE_PARAMS,
    SECTIONS,
    client_stage,
    score_stage,
    server_stage,
)

_HERE = "curvote.protocols.sgd"

_DESCEND = client_stage(
    "descend",
    f"{_HERE}.descend",
    GRADIENTS,
    params=("sgd.clip", "sgd.rate", "sgd.rounds"),
)
_AGGREGATE = server_stage(
    "aggregate",
    f"{_HERE}.aggregate",
    ("descend",),
    CLASSIFIER,
    params=("sgd.rate",),
)
_SCORE = score_stage(
    f"{_HERE}.score",
    ("project", "aggregate"),
    params=("epsilon", *ROLE_PARAMS),
    beside=(CONFUSION,),
)


def _check_round_count(pipeline: Given) -> Iterator[Problem]:
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
    final_model=finals.decoded_model,
    production_metrics=outcomes.count_reports,
    sections=SECTIONS,
)
