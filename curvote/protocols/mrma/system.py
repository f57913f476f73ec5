"""MRMA as data: which stages, what each reads, what it measures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curvote.chain.axis import EPSILON
from curvote.chain.stage import Stage
from curvote.chain.system import System
from curvote.privacy import label_share
from curvote.protocols import checks, finals, outcomes
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.measures import ERRORS, LEARNER
from curvote.protocols.mrma import methods
from curvote.protocols.mrma.messages import MESSAGES
from curvote.protocols.mrma.settings import Settings
from curvote.protocols.mrma.spelled import spelled
from curvote.protocols.mrma.tables import ENSEMBLE, REPORTS, VOTES, WEAK
from curvote.protocols.stage import Release
from curvote.protocols.stages.declared import (
    COMMON,
    LEARNERS,
    MECHANISMS,
    ROLES,
    WHO,
    drawn,
    released,
    scored,
)
from curvote.protocols.watching import alarm

_HERE = "curvote.protocols.mrma"
CELLS = ("epsilon", "learner")
REPORT = tuple(f"privatize.{key}" for key in ("mechanism", "params", "label_share"))

PRIVATIZE = drawn(
    "privatize",
    f"{_HERE}.privatize",
    REPORTS,
    inputs=("project",),
    axes=("epsilon",),
    params=("epsilon", *REPORT, *ROLES),
    plugins=(MECHANISMS,),
)
TRAIN = Stage(
    "train",
    f"{_HERE}.train",
    inputs=("privatize",),
    axes=CELLS,
    params=(
        "learner.name",
        "learner.params",
        "train.count",
        "train.size",
        "seed",
        "replicates",
    ),
    plugins=(LEARNERS,),
    tables=(WEAK,),
    side="server",
)
EVALUATE = drawn(
    "evaluate",
    f"{_HERE}.evaluate",
    VOTES,
    inputs=("project", "train"),
    axes=CELLS,
    params=("epsilon", "project.judge", *ROLES),
)
AGGREGATE = Stage(
    "aggregate",
    f"{_HERE}.aggregate",
    inputs=("evaluate",),
    axes=CELLS,
    params=(
        "epsilon",
        "aggregate.cutoff",
        "aggregate.when_none_pass",
        "aggregate.weights",
        "replicates",
    ),
    tables=(ENSEMBLE,),
    side="server",
)
STAGES = (
    *COMMON,
    PRIVATIZE,
    TRAIN,
    EVALUATE,
    AGGREGATE,
    scored(
        f"{_HERE}.score",
        ("project", "train", "aggregate"),
        axes=CELLS,
        params=("project.judge", "report.definitions", *ROLES),
    ),
    scored(
        f"{_HERE}.baseline",
        ("project",),
        axes=("epsilon",),
        params=("epsilon", "histogram.bins", "published.histogram", *ROLES),
    ),
)

RELEASE_VOTES = released(
    "evaluate",
    "vote",
    VOTES,
    inputs=("ingest", "privatize", "train"),
    axes=CELLS,
    params=("epsilon", "protocol", *WHO),
)
# No baseline and no score: what only a study could draw or know is not asked for.
PRODUCTION = (
    *COMMON,
    released(
        "privatize",
        "report",
        REPORTS,
        inputs=("ingest", "project"),
        axes=("epsilon",),
        params=("epsilon", "protocol", "project.judge", *REPORT, *WHO),
        plugins=(MECHANISMS,),
    ),
    TRAIN,
    RELEASE_VOTES,
    AGGREGATE,
)


def releases_reports(config: Mapping[str, Any], d: int) -> list[Release]:
    """Return a training client's message in words."""
    privatize = config["privatize"]
    share = label_share(privatize["label_share"], d)
    return [
        Release(
            "training client",
            f"one report: {d} noised numbers and a noised label",
            _report(config),
            "epsilon",
            f"epsilon x {(1 - share) / d:.3g} for each number,"
            f" epsilon x {share:.3g} for the label",
        )
    ]


def _report(config: Mapping[str, Any]) -> str:
    return f"{config['privatize']['mechanism']} and binary_rr"


def releases(config: Mapping[str, Any], d: int) -> list[Release]:
    """Return the messages of each client in words, for every epsilon of a pipeline."""
    return [
        *releases_reports(config, d),
        Release(
            "evaluation client",
            'one noised bit: "the classifier was right for me"',
            "binary_rr",
            "epsilon",
            "each judges one classifier, once, with the whole budget",
        ),
        Release(
            "evaluation client",
            f"a report as well: {d} noised numbers and a noised label",
            _report(config),
            "epsilon",
            "for voting, averaging and all_data, which learn from everybody's report",
            study_only=True,
        ),
        Release(
            "every client",
            "one noised label",
            "binary_rr",
            "epsilon",
            "for majority, the constant classifier that a method must beat",
            study_only=True,
        ),
        Release(
            "every client",
            f"{config['histogram']['bins']}^{d} noised numbers, one for each cell",
            "laplace",
            "epsilon",
            "for histogram; two of them depend on the record",
            study_only=True,
        ),
    ]


SYSTEM = System(
    name="mrma",
    settings=Settings,
    stages=STAGES,
    production=PRODUCTION,
    axes=(EPSILON, LEARNER),
    messages=MESSAGES,
    metrics=ERRORS,
    methods=(*methods.EVERY, MAJORITY),
    main=("mrma",),
    checks=checks.every(
        checks.tested, checks.trained, checks.judged, checks.taught, checks.budgets
    ),
    spelled=spelled,
    final=finals.ensemble,
    outcome=outcomes.voted,
    alarm=alarm,
    releases=releases,
)
