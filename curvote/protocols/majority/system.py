"""System `majority`: noised labels, and the class that they elect."""

from __future__ import annotations

from curvote.chain.system import System
from curvote.protocols import checks
from curvote.protocols.majority.final import majority_model, majority_outcome
from curvote.protocols.majority.messages import MESSAGES
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.majority.tables import ELECTED, LABELS
from curvote.protocols.measures import ERRORS
from curvote.protocols.settings import Shared
from curvote.protocols.stages.declared import (
    COMMON_STAGES,
    ROLE_PARAMS,
    SECTIONS,
    client_stage,
    release_stage,
    score_stage,
    server_stage,
)

_HERE = "curvote.protocols.majority"
_PRIVATIZE = client_stage("privatize", f"{_HERE}.privatize", LABELS)
_AGGREGATE = server_stage(
    "aggregate", f"{_HERE}.aggregate", ("project", "privatize"), ELECTED
)
_RELEASE = release_stage(
    _PRIVATIZE, "report", ("ingest", "project"), ("project.judge",)
)
_SCORE = score_stage(f"{_HERE}.score", ("project",), params=("epsilon", *ROLE_PARAMS))


SYSTEM = System(
    name="majority",
    settings=Shared,
    stages=(*COMMON_STAGES, _PRIVATIZE, _AGGREGATE, _SCORE),
    production=(*COMMON_STAGES, _RELEASE, _AGGREGATE),
    messages=MESSAGES,
    metrics=ERRORS,
    methods=(MAJORITY,),
    main=("majority",),
    checks=checks.combine_checks(
        checks.check_test_clients, classes=checks.check_many_classes
    ),
    final_model=majority_model,
    production_metrics=majority_outcome,
    sections=SECTIONS,
)
