"""The stages that all protocols begin with, and short forms of their other ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from curvote.chain.axis import Settings
from curvote.chain.measure import SCORES
from curvote.chain.stage import Stage
from curvote.chain.tables import Table
from curvote.datasets.lookup import chosen
from curvote.protocols.stages.tables import CLIENTS, CONSTANTS, ENCODED

Names = tuple[str, ...]
_HERE = "curvote.protocols.stages"
# Who plays which role, in production and in a study.
_WHO = ("clients", "source.groups", "seed")
ROLES = (*_WHO, "replicates")
# The cells of most stages: one for each epsilon.
AXES = ("epsilon",)
LEARNERS = ("curvote.server.learners.registry:LEARNERS", "learner.name")
MECHANISMS = ("curvote.mechanisms.registry:MECHANISMS", "privatize.mechanism")

_DRAWN = ("seed", "replicates")
_CONSTANTS = {
    "tanh": ("project.centre", "project.scale"),
    "standard": ("project.centre", "project.scale"),
    "min_max": ("project.lower", "project.upper", "project.bounds"),
}


def _simulation(settings: Settings) -> tuple[str, ...]:
    dataset, parameters = chosen(settings.source)
    if not dataset.SIMULATED:
        return ()
    # How many are drawn, the source says itself, or who plays which role.
    stated = dataset.size(parameters) is not None
    return _DRAWN if stated else ("clients", *_DRAWN)


def _constants(settings: Settings) -> tuple[str, ...]:
    project = settings.project
    volunteers = ROLES if project.volunteers else ()
    return (*_CONSTANTS.get(project.rescale, ()), *volunteers)


# Who names the servers of a source, beside its records.
DATASETS = ("curvote.datasets.registry:DATASETS", "source.name")

INGEST = Stage(
    "ingest",
    f"{_HERE}.ingest",
    params=("source",),
    plugins=(DATASETS,),
    tables=(CLIENTS,),
    also=_simulation,
    libraries=("pandas", "pyarrow"),
    raw=True,
)
PROJECT = Stage(
    "project",
    f"{_HERE}.project",
    inputs=("ingest",),
    params=(
        "project.basis",
        "project.size",
        "project.order",
        "project.coordinates",
        "project.rescale",
    ),
    tables=(ENCODED, CONSTANTS),
    also=_constants,
    libraries=("scikit-fda",),
)
COMMON = (INGEST, PROJECT)

_SECTIONS = "curvote.reporting.sections"
# What a page shows of clients who reduce curves to numbers and play roles; of votes on
# classifiers; and of a cutoff.
SECTIONS = tuple(
    f"{_SECTIONS}.{name}"
    for name in ("by_class", "curves", "data_set", "volunteers", "clients")
)
DATA_SET = f"{_SECTIONS}.data_set"
UTILITIES = f"{_SECTIONS}.utilities"
NONE_PASSED = f"{_SECTIONS}.none_passed"


def drawn(
    name: str,
    place: str,
    table: Table,
    inputs: Names = ("project",),
    *,
    axes: Names = AXES,
    params: Names = (),
    **more: Any,
) -> Stage:
    """Return a study's stage in which clients draw messages.

    It reads epsilon and who plays which role beside ``params``.
    """
    read, side = ("epsilon", *ROLES, *params), "client -> server"
    return Stage(name, place, inputs, axes, read, tables=(table,), side=side, **more)


def released(
    stage: Stage, message: str, inputs: Names, params: Names = (), **more: Any
) -> Stage:
    """Return the stage of production for one of a study: a message leaves the clients.

    It reads epsilon, protocol and who plays which role beside ``params``.
    """
    return replace(
        stage,
        module=f"{_HERE}.released",
        inputs=inputs,
        params=("epsilon", "protocol", *_WHO, *params),
        message=message,
        collected=f"{_HERE}.collected",
        **more,
    )


def served(
    name: str,
    place: str,
    inputs: Names,
    *tables: Table,
    axes: Names = AXES,
    params: Names = (),
    **more: Any,
) -> Stage:
    """Return a stage in which the server computes on what it was sent."""
    read = (*params, "replicates")
    more = {"side": "server"} | more
    return Stage(name, place, inputs, axes, read, tables=tables, **more)


def scored(
    place: str,
    inputs: Names,
    axes: Names = AXES,
    params: Names = (),
    beside: tuple[Table, ...] = (),
    **more: Any,
) -> Stage:
    """Return the last stage of a study: what only its true labels tell.

    It makes the table ``scores``, and others ``beside`` it.
    """
    tables, side = (SCORES, *beside), "client (study)"
    return Stage(
        "report", place, inputs, axes, params, tables=tables, side=side, **more
    )
