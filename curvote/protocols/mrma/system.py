"""System `mrma`: its stages, messages and measures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from curvote.chain.axis import EPSILON
from curvote.chain.sent import MessageDescription
from curvote.chain.system import System
from curvote.chain.view import View
from curvote.protocols import checks, finals, outcomes
from curvote.protocols.majority.messages import ComparisonLabel
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.measures import ERRORS, LEARNER
from curvote.protocols.mrma import methods, several
from curvote.protocols.mrma.messages import MESSAGES, Pooled
from curvote.protocols.mrma.settings import Settings
from curvote.protocols.mrma.spelled import expand_published
from curvote.protocols.mrma.tables import ENSEMBLE, REPORTS, VOTES, WEAK
from curvote.protocols.stages.declared import (
    COMMON_STAGES,
    LEARNERS,
    MECHANISMS,
    NONE_PASSED,
    ROLE_PARAMS,
    SECTIONS,
    UTILITIES,
    client_stage,
    release_stage,
    score_stage,
    server_stage,
)

_HERE = "curvote.protocols.mrma"
CELL_AXES = ("epsilon", "learner")
REPORT_PARAMS = tuple(
    f"privatize.{key}" for key in ("mechanism", "params", "label_share")
)

DRAW_PARAMS = ("train.count", "train.size", "seed")
LEARN_PARAMS = ("learner.name", "learner.params", *DRAW_PARAMS)
RULE_PARAMS = tuple(
    f"aggregate.{key}" for key in ("cutoff", "when_none_pass", "weights")
)

PRIVATIZE = client_stage(
    "privatize",
    f"{_HERE}.privatize",
    REPORTS,
    params=REPORT_PARAMS,
    plugins=(MECHANISMS,),
)
TRAIN = server_stage(
    "train",
    f"{_HERE}.train",
    ("privatize",),
    WEAK,
    axes=CELL_AXES,
    params=LEARN_PARAMS,
    plugins=(LEARNERS,),
)
EVALUATE = client_stage(
    "evaluate",
    f"{_HERE}.evaluate",
    VOTES,
    ("project", "train"),
    axes=CELL_AXES,
    params=("project.judge",),
)
AGGREGATE = server_stage(
    "aggregate",
    f"{_HERE}.aggregate",
    ("evaluate",),
    ENSEMBLE,
    axes=CELL_AXES,
    params=("epsilon", *RULE_PARAMS),
)
SCORE = score_stage(
    f"{_HERE}.score",
    ("project", "train", "aggregate"),
    CELL_AXES,
    ("project.judge", "report.definitions", *ROLE_PARAMS),
)
BASELINE = score_stage(
    f"{_HERE}.baseline",
    ("project",),
    params=("epsilon", "histogram.bins", "published.histogram", *ROLE_PARAMS),
)
STAGES = (*COMMON_STAGES, PRIVATIZE, TRAIN, EVALUATE, AGGREGATE, SCORE, BASELINE)

RELEASE = release_stage(
    PRIVATIZE, "report", ("ingest", "project"), ("project.judge", *REPORT_PARAMS)
)
RELEASE_VOTES = release_stage(EVALUATE, "vote", ("ingest", "privatize", "train"))
# No baseline and no score: what only a study could draw or know is not asked for.
PRODUCTION = (*COMMON_STAGES, RELEASE, TRAIN, RELEASE_VOTES, AGGREGATE)


def describe_histogram(config: Mapping[str, Any], d: int) -> list[MessageDescription]:
    """Return the description of what the histogram's clients would send."""
    n_classes = several.class_count(config["source"])
    prefix = f"{n_classes} x " if n_classes > 2 else ""
    suffix = " and class" if n_classes > 2 else ""
    bins = config["histogram"]["bins"]
    what = f"{prefix}{bins}^{d} noised numbers, one for each cell{suffix}"
    detail = "for histogram; two of them depend on the record"
    return [MessageDescription("every client", what, "laplace", detail)]


def _histogram_notes(views: Sequence[View]) -> Iterator[str]:
    """Yield why the histogram is missing, where it is."""
    for view in views:
        if not view.settings.production:
            reason = view.without("learner").metadata("report").get("histogram")
            if reason:
                yield f"histogram: {reason}"


SYSTEM = System(
    name="mrma",
    settings=Settings,
    stages=STAGES,
    production=PRODUCTION,
    axes=(EPSILON, LEARNER),
    messages=MESSAGES,
    study_messages=(Pooled().describe, ComparisonLabel().describe, describe_histogram),
    metrics=ERRORS,
    methods=(*methods.ALL_METHODS, MAJORITY),
    main=("mrma",),
    checks=checks.combine_checks(
        *checks.LEARNING_CHECKS, classes=several.check_classes
    ),
    resolve_parts=several.resolve_classes,
    normalize=expand_published,
    final_model=finals.ensemble_model,
    production_metrics=outcomes.vote_outcome,
    needs_new_round=outcomes.votes_declined,
    notes=_histogram_notes,
    sections=(NONE_PASSED, UTILITIES, *SECTIONS),
)
