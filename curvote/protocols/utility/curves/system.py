"""The quantification of noised coefficients as data."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from curvote.chain.axis import EPSILON
from curvote.chain.stage import Stage
from curvote.chain.system import System
from curvote.protocols.measures import LEARNER
from curvote.protocols.stages.declared import (
    INGEST,
    LEARNERS,
    PROJECT,
    ROLES,
    SECTIONS,
)
from curvote.protocols.utility import system as whole
from curvote.protocols.utility.curves.checks import checks
from curvote.protocols.utility.curves.settings import Settings
from curvote.protocols.utility.final import rule

_HERE: Final = "curvote.protocols.utility.curves"


def _of_curves(stage: Stage) -> Stage:
    """Return a stage that reads coefficients where others read features."""
    inputs = ("project", *stage.inputs[1:])
    params = tuple(name for name in stage.params if name != "record")
    return replace(stage, inputs=inputs, params=params)


_FIT = Stage(
    "fit",
    f"{_HERE}.fit",
    inputs=("project",),
    axes=("learner",),
    params=("learner", *ROLES),
    plugins=(LEARNERS,),
    tables=whole.FIT.tables,
    side=whole.FIT.side,
    libraries=whole.LIBRARIES,
)

SYSTEM = System(
    name="utility_curves",
    settings=Settings,
    stages=(
        INGEST,
        PROJECT,
        _FIT,
        *map(_of_curves, (whole.SURFACE, whole.AGREE, whole.REPORT)),
    ),
    axes=(EPSILON, LEARNER, whole.MECHANISM),
    asked=lambda settings, read: (),
    metrics=whole.SYSTEM.metrics,
    methods=whole.SYSTEM.methods,
    main=whole.SYSTEM.main,
    checks=checks,
    final=rule,
    notes=whole.SYSTEM.notes,
    sections=(*SECTIONS, *whole.OWN_SECTIONS),
)
