"""MRMA as data: which stages, what each reads, what it measures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from curvote.chain.axis import EPSILON
from curvote.chain.sent import Sent
from curvote.chain.system import System
from curvote.chain.view import View
from curvote.protocols import checks, finals, outcomes
from curvote.protocols.majority.messages import Compared
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.measures import ERRORS, LEARNER
from curvote.protocols.mrma import methods, several
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
    drawn,
    released,
    scored,
    served,
)

_HERE = "curvote.protocols.mrma"
CELLS = ("epsilon", "learner")
REPORT = tuple(f"privatize.{key}" for key in ("mechanism", "params", "label_share"))

DRAW = ("train.count", "train.size", "seed")
LEARN = ("learner.name", "learner.params", *DRAW)
RULE = tuple(f"aggregate.{key}" for key in ("cutoff", "when_none_pass", "weights"))

PRIVATIZE = drawn(
    "privatize",
    f"{_HERE}.privatize",
    REPORTS,
    params=REPORT,
    plugins=(MECHANISMS,),
)
TRAIN = served(
    "train",
    f"{_HERE}.train",
    ("privatize",),
    WEAK,
    axes=CELLS,
    params=LEARN,
    plugins=(LEARNERS,),
)
EVALUATE = drawn(
    "evaluate",
    f"{_HERE}.evaluate",
    VOTES,
    ("project", "train"),
    axes=CELLS,
    params=("project.judge",),
)
AGGREGATE = served(
    "aggregate",
    f"{_HERE}.aggregate",
    ("evaluate",),
    ENSEMBLE,
    axes=CELLS,
    params=("epsilon", *RULE),
)
SCORE = scored(
    f"{_HERE}.score",
    ("project", "train", "aggregate"),
    CELLS,
    ("project.judge", "report.definitions", *ROLES),
)
BASELINE = scored(
    f"{_HERE}.baseline",
    ("project",),
    params=("epsilon", "histogram.bins", "published.histogram", *ROLES),
)
STAGES = (*COMMON, PRIVATIZE, TRAIN, EVALUATE, AGGREGATE, SCORE, BASELINE)

RELEASE = released(
    PRIVATIZE, "report", ("ingest", "project"), ("project.judge", *REPORT)
)
RELEASE_VOTES = released(EVALUATE, "vote", ("ingest", "privatize", "train"))
# No baseline and no score: what only a study could draw or know is not asked for.
PRODUCTION = (*COMMON, RELEASE, TRAIN, RELEASE_VOTES, AGGREGATE)


def cells(config: Mapping[str, Any], d: int) -> list[Sent]:
    """Return in words what the histogram's clients would send."""
    n_classes = several.number(config["source"])
    each = f"{n_classes} x " if n_classes > 2 else ""
    beside = " and class" if n_classes > 2 else ""
    bins = config["histogram"]["bins"]
    what = f"{each}{bins}^{d} noised numbers, one for each cell{beside}"
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
    checks=checks.every(*checks.LEARNING, classes=several.checked),
    parts=several.parts,
    spelled=spelled,
    final=finals.ensemble,
    outcome=outcomes.voted,
    alarm=outcomes.alarm,
    notes=_notes,
    sections=(NONE_PASSED, UTILITIES, *SECTIONS),
)
