"""`direct` in one round as data: reports, then their mean.

Arms ``mean`` and ``joint``; `direct_two` is the arm ``two``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curvote.chain.stage import Stage
from curvote.chain.system import System
from curvote.protocols import checks, finals, outcomes
from curvote.protocols.auto import choosing
from curvote.protocols.direct.messages import MESSAGES
from curvote.protocols.direct.methods import JOINT, MEAN
from curvote.protocols.direct.settings import Settings
from curvote.protocols.direct.tables import CLASSIFIER, DIRECTIONS
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.measures import MISCLASSIFICATION
from curvote.protocols.stage import Release
from curvote.protocols.stages.declared import (
    COMMON,
    ROLES,
    WHO,
    drawn,
    released,
    scored,
)

_HERE = "curvote.protocols.direct"
AXES = ("epsilon",)
TERMS = ("epsilon", "direct.arm", "direct.intercept")
FIXED = {"project.judge": "rescaled"}  # it learns from z

PRIVATIZE = drawn(
    "privatize",
    f"{_HERE}.privatize",
    DIRECTIONS,
    inputs=("project",),
    axes=AXES,
    params=(*TERMS, *ROLES),
)
RELEASE = released(
    "privatize",
    "report",
    DIRECTIONS,
    inputs=("ingest", "project"),
    axes=AXES,
    params=(*TERMS, "protocol", "project.judge", *WHO),
)
AGGREGATE = Stage(
    "aggregate",
    f"{_HERE}.aggregate",
    inputs=("privatize",),
    axes=AXES,
    params=("replicates",),
    tables=(CLASSIFIER,),
    side="server",
)
SCORE = scored(
    f"{_HERE}.score",
    ("project", "aggregate"),
    axes=AXES,
    params=("epsilon", "direct.arm", *ROLES),
)


def releases(config: Mapping[str, Any], d: int) -> list[Release]:
    """Return the messages of each client in words, for every epsilon of a pipeline."""
    return [direction("every client", "the whole of it"), majority_label()]


def direction(who: str, detail: str) -> Release:
    """Return a report in words."""
    what = "one noised direction, made of its numbers and its label"
    return Release(who, what, "privunit", "epsilon", detail)


def majority_label() -> Release:
    """Return what a study asks for beside the protocol's own messages."""
    return Release(
        "every client",
        "one noised label",
        "binary_rr",
        "epsilon",
        "for majority, the constant classifier that a method must beat",
        study_only=True,
    )


SYSTEM = System(
    name="direct",
    settings=Settings,
    stages=(*COMMON, PRIVATIZE, AGGREGATE, SCORE),
    production=(*COMMON, RELEASE, AGGREGATE),
    messages=MESSAGES,
    metrics=(MISCLASSIFICATION,),
    methods=(MEAN, JOINT, MAJORITY),
    main=("mean", "joint"),
    checks=checks.every(checks.tested, choosing.checks),
    parts=choosing.parts,
    short=("arm", "intercept"),
    fixed=FIXED,
    final=finals.one,
    outcome=outcomes.reported,
    releases=releases,
)
