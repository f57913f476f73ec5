"""The comparison without privacy as data: learners on what clients would never send."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from curvote.chain.axis import EPSILON, Settings
from curvote.chain.sent import Sent
from curvote.chain.stage import Stage
from curvote.chain.system import System
from curvote.chain.tables import VECTOR, Table
from curvote.errors import Problem, UserError
from curvote.protocols import checks
from curvote.protocols.by_class import CONFUSION, several
from curvote.protocols.measures import ERRORS, LEARNER
from curvote.protocols.mrma.spelled import spelled
from curvote.protocols.non_private.methods import CLEAN
from curvote.protocols.non_private.settings import Settings as Sections
from curvote.protocols.non_private.several import made
from curvote.protocols.stages.declared import COMMON, LEARNERS, ROLES, SECTIONS, scored

_HERE = "curvote.protocols.non_private"
_AXES = ("learner",)

_FITTED = Table(
    "fitted",
    {
        "learner": "int64",
        "coef": VECTOR,
        "intercept": "float64",
        "n": "int64",
        "flagged": "bool",
    },
    side="client (study)",
    unit="classifier",
)
_FIT = Stage(
    "fit",  # not "train": what it makes is for the clients' side only
    f"{_HERE}.fit",
    inputs=("project",),
    axes=_AXES,
    params=("learner.name", "learner.params", "train.count", "train.size", *ROLES),
    plugins=(LEARNERS,),
    tables=(_FITTED,),
    side="client (study)",
)
_SCORE = scored(
    f"{_HERE}.score",
    ("project", "fit"),
    axes=_AXES,
    params=("project.judge", *ROLES),
    beside=(CONFUSION,),
)


def records(config: Mapping[str, Any], d: int) -> list[Sent]:
    """Return in words the one thing that this system would ask for: everything."""
    what = f"{d} numbers and the label as they are"
    return [Sent("training client", what, "none", epsilon="no privacy")]


def _taught(pipeline: Settings) -> Iterator[Problem]:
    """Ask for what there is to learn from, and for learners of so many classes."""
    yield from checks.taught(pipeline)
    if not several(pipeline):
        if pipeline.train is not None:
            yield from checks.trained(pipeline)
        return
    for index, learner in enumerate(pipeline.learners):
        try:
            made(learner.name, learner.params)
        except UserError as error:
            yield Problem(str(error), ("learners", index))


# No model is kept: it would be fitted on what clients never send.

SYSTEM = System(
    name="clean",
    settings=Sections,
    stages=(*COMMON, _FIT, _SCORE),
    axes=(LEARNER,),
    x=EPSILON,
    compared=(records,),
    metrics=ERRORS,
    methods=(CLEAN,),
    main=("clean",),
    checks=checks.every(checks.tested, _taught, classes=checks.many),
    spelled=spelled,
    sections=SECTIONS,
)
