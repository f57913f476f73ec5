"""System `utility_curves`: its settings, their checks, and its stages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from curvote.base.errors import Problem
from curvote.chain.axis import EPSILON, PipelineSettings
from curvote.chain.settings import Epsilons, Strict
from curvote.chain.stage import Stage
from curvote.chain.system import System
from curvote.messages.measures import LEARNER
from curvote.systems.common import checks as shared
from curvote.systems.common import declarations
from curvote.systems.common.settings import Clients, Learner, Representation
from curvote.systems.utility import system as utility


class Settings(Strict):
    """What a quantification of noised coefficients reads."""

    clients: Clients
    project: Representation
    epsilon: Epsilons
    learners: list[Learner] = []
    deployments: utility.Deployments = utility.Deployments()


def check_settings(pipeline: PipelineSettings) -> Iterator[Problem]:
    """Yield the problems of roles, encoding, learners and mechanisms."""
    every = (
        shared.check_roles,
        shared.check_two_classes,
        shared.check_test_clients,
        shared.check_representation,
        shared.check_learners,
    )
    for check in every:
        yield from check(pipeline)
    yield from utility.check_study(pipeline)
    yield from utility.check_deployments(pipeline)
    for key in ("components", "directions"):
        if getattr(pipeline.deployments, key):
            message = "coefficients are few already: send them, or fewer of the basis."
            yield Problem(message, ("deployments", key))
    if "retrain" in pipeline.deployments.reads:
        message = "a rule on coefficients is not fitted again: read raw or decode."
        yield Problem(message, ("deployments", "reads"))


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
    params=("learner", *declarations.ROLE_PARAMS),
    plugins=(declarations.LEARNERS,),
    tables=utility.FIT.tables,
    side=utility.FIT.side,
    libraries=utility.LIBRARIES,
)

SYSTEM = System(
    name="utility_curves",
    settings=Settings,
    stages=(
        declarations.INGEST,
        declarations.PROJECT,
        _FIT,
        *map(_on_coefficients, (utility.SURFACE, utility.AGREE, utility.REPORT)),
    ),
    axes=(EPSILON, LEARNER, utility.MECHANISM),
    audit_tasks=lambda settings, read: (),
    metrics=utility.SYSTEM.metrics,
    methods=utility.SYSTEM.methods,
    main=utility.SYSTEM.main,
    checks=check_settings,
    final_model=utility.final_rule,
    notes=utility.SYSTEM.notes,
    sections=(*declarations.SECTIONS, *utility.UTILITY_SECTIONS),
)
