"""System `votes`: public directions, one vote a client, weights."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from curvote.chain.axis import PipelineSettings as Given
from curvote.chain.measure import Look, Method
from curvote.chain.system import System
from curvote.errors import Problem
from curvote.protocols import by_class, checks, finals, outcomes
from curvote.protocols.direct.system import JUDGED_BY_Z
from curvote.protocols.majority.messages import ComparisonLabel
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.measures import ERRORS
from curvote.protocols.mrma.methods import BEST_SINGLE_METHOD
from curvote.protocols.mrma.several import class_count
from curvote.protocols.mrma.tables import ENSEMBLE, VOTES, WEAK
from curvote.protocols.questions import halving_code
from curvote.protocols.stages.declared import (
    COMMON_STAGES,
    ROLE_PARAMS,
    SECTIONS,
    UTILITIES,
    client_stage,
    release_stage,
    score_stage,
    server_stage,
)
from curvote.protocols.votes.messages import MESSAGES
from curvote.protocols.votes.settings import Settings

_HERE = "curvote.protocols.votes"

# No client has a part in it: every epsilon shares the directions.
_TRAIN = server_stage(
    "train",
    f"{_HERE}.train",
    ("project",),
    WEAK,
    axes=(),
    params=("votes.directions", "direct.intercept", "seed"),
)
_EVALUATE = client_stage("evaluate", f"{_HERE}.evaluate", VOTES, ("project", "train"))
_RELEASE = release_stage(
    _EVALUATE, "vote", ("ingest", "project", "train"), ("project.judge",)
)
_AGGREGATE = server_stage("aggregate", f"{_HERE}.aggregate", ("evaluate",), ENSEMBLE)
_SCORE = score_stage(
    f"{_HERE}.score",
    ("project", "train", "aggregate"),
    params=("epsilon", *ROLE_PARAMS),
    beside=(by_class.CONFUSION,),
)


def _check_direction_count(pipeline: Given) -> Iterator[Problem]:
    yield from checks.check_many_classes(pipeline)
    voters = pipeline.clients.train + pipeline.clients.vote
    split_count = len(halving_code(class_count(pipeline.source)))
    if pipeline.votes.directions * split_count > voters:
        about = f" about each of {split_count} splits" if split_count > 1 else ""
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
    stages=(*COMMON_STAGES, _TRAIN, _EVALUATE, _AGGREGATE, _SCORE),
    production=(*COMMON_STAGES, _TRAIN, _RELEASE, _AGGREGATE),
    messages=MESSAGES,
    study_messages=(ComparisonLabel().describe,),
    metrics=ERRORS,
    methods=(_VOTES, BEST_SINGLE_METHOD, MAJORITY),
    main=("votes",),
    checks=checks.combine_checks(
        checks.check_test_clients, classes=_check_direction_count
    ),
    shorthand=("directions",),
    implied_settings=JUDGED_BY_Z,
    final_model=partial(finals.ensemble_model, code=halving_code),
    production_metrics=outcomes.vote_outcome,
    needs_new_round=outcomes.votes_declined,
    sections=(UTILITIES, *SECTIONS),
)
