"""System `majority`: noised labels, and the class that they elect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Table
from curvote.chain.system import System, View
from curvote.messages.measures import ERRORS, MAJORITY
from curvote.systems.common import checks
from curvote.systems.common.declarations import (
    COMMON_STAGES,
    ROLE_PARAMS,
    SECTIONS,
    client_stage,
    release_stage,
    score_stage,
    server_stage,
)
from curvote.systems.common.models import FIRST_REPETITION, record_columns
from curvote.systems.common.settings import Shared
from curvote.systems.references.messages import MESSAGES
from curvote.systems.references.stages import elect_class

if TYPE_CHECKING:
    from curvote.systems.references.model import ConstantClassifier


LABELS: Final = Table("labels", {"label": "int8"}, unit="message")
ELECTED: Final = Table("elected", {"place": "int64", "n": "int64"}, unit="classifier")


def majority_model(view: View) -> ConstantClassifier:
    """Return the constant classifier of the first repetition."""
    from curvote.systems.references.model import ConstantClassifier  # see `linear`

    classes = list(view.metadata("project")["classes"])
    place = elect_class(_noised_labels(view), len(classes))
    return ConstantClassifier(record_columns(view), classes, place)


def majority_outcome(view: View) -> dict[str, float]:
    """Return the number of labels that were counted."""
    return {"reports": len(_noised_labels(view))}


def _noised_labels(view: View) -> NDArray[np.int8]:
    return view.columns("privatize", "labels", FIRST_REPETITION)["label"]


_PRIVATIZE = client_stage(
    "privatize", "curvote.systems.references.stages:privatize", LABELS
)
_AGGREGATE = server_stage(
    "aggregate",
    "curvote.systems.references.stages:aggregate",
    ("project", "privatize"),
    ELECTED,
)
_RELEASE = release_stage(
    _PRIVATIZE, "report", ("ingest", "project"), ("project.judge",)
)
_SCORE = score_stage(
    "curvote.systems.references.stages:score",
    ("project",),
    params=("epsilon", *ROLE_PARAMS),
)


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
