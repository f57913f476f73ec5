"""System `votes`: public directions, one vote a client, weights."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from curvote.base.errors import Problem
from curvote.chain.axis import PipelineSettings
from curvote.chain.measure import Look, Method
from curvote.chain.settings import Strict, WholeNumber
from curvote.chain.system import System
from curvote.messages.measures import ERRORS, MAJORITY
from curvote.systems.common import checks, models, study
from curvote.systems.common.declarations import (
    COMMON_STAGES,
    ROLE_PARAMS,
    SECTIONS,
    UTILITIES,
    client_stage,
    release_stage,
    score_stage,
    server_stage,
)
from curvote.systems.common.mrma_settings import class_count
from curvote.systems.common.questions import halving_code
from curvote.systems.common.settings import Shared
from curvote.systems.common.tables import ENSEMBLE, VOTES, WEAK
from curvote.systems.direct.system import JUDGED_BY_Z, Direct
from curvote.systems.mrma.system import BEST_SINGLE_METHOD, Watch
from curvote.systems.mrma.votes.messages import MESSAGES
from curvote.systems.references.messages import ComparisonLabel


class Votes(Strict):
    """Number of random directions that clients judge.

    Of more than two classes, so many about each split of them into halves.
    """

    directions: WholeNumber = 100


class Settings(Shared):
    """Settings of votes about random directions."""

    votes: Votes = Votes()
    direct: Direct = Direct()
    online: Watch = Watch()


# No client has a part in it: every epsilon shares the directions.
_TRAIN = server_stage(
    "train",
    "curvote.systems.mrma.stages:draw_directions",
    ("project",),
    WEAK,
    axes=(),
    params=("votes.directions", "direct.intercept", "seed"),
)
_EVALUATE = client_stage(
    "evaluate",
    "curvote.systems.mrma.stages:evaluate_directions",
    VOTES,
    ("project", "train"),
)
_RELEASE = release_stage(
    _EVALUATE, "vote", ("ingest", "project", "train"), ("project.judge",)
)
_AGGREGATE = server_stage(
    "aggregate",
    "curvote.systems.mrma.stages:aggregate_votes",
    ("evaluate",),
    ENSEMBLE,
)
_SCORE = score_stage(
    "curvote.systems.mrma.stages:score_votes",
    ("project", "train", "aggregate"),
    params=("epsilon", *ROLE_PARAMS),
    beside=(study.CONFUSION,),
)


def _check_direction_count(pipeline: PipelineSettings) -> Iterator[Problem]:
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
    final_model=partial(models.ensemble_model, code=halving_code),
    production_metrics=models.vote_outcome,
    needs_new_round=models.votes_declined,
    sections=(UTILITIES, *SECTIONS),
)
