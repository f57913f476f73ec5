"""MRMA as data: which stages, what each reads, what it measures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from curvote.chain.axis import EPSILON
from curvote.chain.sent import Sent
from curvote.chain.stage import Stage
from curvote.chain.system import System
from curvote.chain.view import View
from curvote.protocols import checks, finals, outcomes
from curvote.protocols.majority.messages import Compared
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.measures import ERRORS, LEARNER
from curvote.protocols.mrma import methods
from curvote.protocols.mrma.messages import MESSAGES, Pooled
from curvote.protocols.mrma.settings import Settings
from curvote.protocols.mrma.spelled import spelled
from curvote.protocols.mrma.tables import ENSEMBLE, REPORTS, VOTES, WEAK
from curvote.protocols.stages.declared import (
    COMMON,
    LEARNERS,
    MECHANISMS,
    NONE_PASSED,
    ROLES,
    SECTIONS,
    UTILITIES,
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


def cells(config: Mapping[str, Any], d: int) -> list[Sent]:
    """Return in words what the histogram's clients would send."""
    what = f"{config['histogram']['bins']}^{d} noised numbers, one for each cell"
    detail = "for histogram; two of them depend on the record"
    return [Sent("every client", what, "laplace", detail)]


def _notes(views: Sequence[View]) -> Iterator[str]:
    """Say why the histogram is missing, where it is."""
    for view in views:
        if not view.settings.production:
            reason = view.without("learner").facts("report").get("histogram")
            if reason:
                yield f"histogram: {reason}"


SYSTEM = System(
    name="mrma",
    settings=Settings,
    stages=STAGES,
    production=PRODUCTION,
    axes=(EPSILON, LEARNER),
    messages=MESSAGES,
    compared=(Pooled().words, Compared().words, cells),
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
    notes=_notes,
    sections=(NONE_PASSED, UTILITIES, *SECTIONS),
)
