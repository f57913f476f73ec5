"""System `utility_curves` as data."""

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
    ROLE_PARAMS,
    SECTIONS,
)
from curvote.protocols.utility import system as whole
from curvote.protocols.utility.curves.checks import check_settings
from curvote.protocols.utility.curves.settings import Settings
from curvote.protocols.utility.final import final_rule

_PACKAGE: Final = "curvote.protocols.utility.curves"


def _on_coefficients(stage: Stage) -> Stage:
    """Return a stage that reads coefficients where others read features."""
    inputs = ("project", *stage.inputs[1:])
    params = tuple(name for name in stage.params if name != "record")
    return replace(stage, inputs=inputs, params=params)


_FIT = Stage(
    "fit",
    f"{_PACKAGE}.fit",
    inputs=("project",),
    axes=("learner",),
    params=("learner", *ROLE_PARAMS),
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
        *map(_on_coefficients, (whole.SURFACE, whole.AGREE, whole.REPORT)),
    ),
    axes=(EPSILON, LEARNER, whole.MECHANISM),
    audit_tasks=lambda settings, read: (),
    metrics=whole.SYSTEM.metrics,
    methods=whole.SYSTEM.methods,
    main=whole.SYSTEM.main,
    checks=check_settings,
    final_model=final_rule,
    notes=whole.SYSTEM.notes,
    sections=(*SECTIONS, *whole.UTILITY_SECTIONS),
)
