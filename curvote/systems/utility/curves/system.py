"""Settings of `utility_curves`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from curvote.base.errors import Problem
from curvote.chain.axis import EPSILON, PipelineSettings
from curvote.chain.settings import Epsilons, Strict
from curvote.chain.stage import Stage
from curvote.chain.system import System
from curvote.messages.measures import LEARNER
from curvote.systems.common import checks as shared
from curvote.systems.common.checks import check_representation
from curvote.systems.common.declarations import (
    INGEST,
    LEARNERS,
    PROJECT,
    ROLE_PARAMS,
    SECTIONS,
)
from curvote.systems.common.settings import Clients, Learner, Representation
from curvote.systems.utility import system as utility_system
from curvote.systems.utility.system import (
    Deployments,
    check_deployments,
    check_study,
    final_rule,
)


class Settings(Strict):
    """What a quantification of noised coefficients reads."""

    clients: Clients
    project: Representation
    epsilon: Epsilons
    learners: list[Learner] = []
    deployments: Deployments = Deployments()


def check_settings(pipeline: PipelineSettings) -> Iterator[Problem]:
    """Yield the problems of roles, encoding, learners and mechanisms."""
    every = (
        shared.check_roles,
        shared.check_two_classes,
        shared.check_test_clients,
        check_representation,
        shared.check_learners,
    )
    for check in every:
        yield from check(pipeline)
    yield from check_study(pipeline)
    yield from check_deployments(pipeline)
    for key in ("components", "directions"):
        if getattr(pipeline.deployments, key):
            message = "coefficients are few already: send them, or fewer of the basis."
            yield Problem(message, ("deployments", key))
    if "retrain" in pipeline.deployments.reads:
        message = "a rule on coefficients is not fitted again: read raw or decode."
        yield Problem(message, ("deployments", "reads"))


_PACKAGE: Final = "curvote.systems.utility.curves"


def _on_coefficients(stage: Stage) -> Stage:
    """Return a stage that reads coefficients where others read features."""
    inputs = ("project", *stage.inputs[1:])
    params = tuple(name for name in stage.params if name != "record")
    return replace(stage, inputs=inputs, params=params)


_FIT = Stage(
    "fit",
    "curvote.systems.utility.stages:fit_curves",
    inputs=("project",),
    axes=("learner",),
    params=("learner", *ROLE_PARAMS),
    plugins=(LEARNERS,),
    tables=utility_system.FIT.tables,
    side=utility_system.FIT.side,
    libraries=utility_system.LIBRARIES,
)

SYSTEM = System(
    name="utility_curves",
    settings=Settings,
    stages=(
        INGEST,
        PROJECT,
        _FIT,
        *map(
            _on_coefficients,
            (utility_system.SURFACE, utility_system.AGREE, utility_system.REPORT),
        ),
    ),
    axes=(EPSILON, LEARNER, utility_system.MECHANISM),
    audit_tasks=lambda settings, read: (),
    metrics=utility_system.SYSTEM.metrics,
    methods=utility_system.SYSTEM.methods,
    main=utility_system.SYSTEM.main,
    checks=check_settings,
    final_model=final_rule,
    notes=utility_system.SYSTEM.notes,
    sections=(*SECTIONS, *utility_system.UTILITY_SECTIONS),
)
