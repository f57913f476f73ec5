"""The MRMA chain as data: which stages, what each reads, what each client releases."""

from __future__ import annotations

from typing import Any

from curvote.privacy import label_share
from curvote.protocols.mrma.messages import MESSAGES
from curvote.protocols.stage import Release, Stage

__all__ = ["MESSAGES", "PRODUCTION", "STAGES", "releases"]

_HERE = "curvote.protocols.mrma"
_LEARNERS = ("curvote.server.learners.registry:LEARNERS", "learner.name")
_MECHANISMS = ("curvote.mechanisms.registry:MECHANISMS", "privatize.mechanism")
_WHO = ("clients", "source.groups", "seed")
_ROLES = (*_WHO, "replicates")
_REPORT = tuple(f"privatize.{key}" for key in ("mechanism", "params", "label_share"))

_TRAIN = Stage(
    "train",
    f"{_HERE}.train",
    inputs=("privatize",),
    axes=("epsilon", "learner"),
    params=(
        "learner.name",
        "learner.params",
        "train.count",
        "train.size",
        "seed",
        "replicates",
    ),
    plugins=(_LEARNERS,),
    tables=("weak",),
    side="server",
)
_AGGREGATE = Stage(
    "aggregate",
    f"{_HERE}.aggregate",
    inputs=("evaluate",),
    axes=("epsilon", "learner"),
    params=(
        "epsilon",
        "aggregate.cutoff",
        "aggregate.when_none_pass",
        "aggregate.weights",
        "replicates",
    ),
    tables=("ensemble",),
    side="server",
)

REPORTS = Stage(
    "privatize",
    f"{_HERE}.privatize",
    inputs=("project",),
    axes=("epsilon",),
    params=("epsilon", *_REPORT, *_ROLES),
    plugins=(_MECHANISMS,),
    tables=("reports",),
    side="client -> server",
)

STAGES = (
    REPORTS,
    _TRAIN,
    Stage(
        "evaluate",
        f"{_HERE}.evaluate",
        inputs=("project", "train"),
        axes=("epsilon", "learner"),
        params=("epsilon", "project.judge", *_ROLES),
        tables=("votes",),
        side="client -> server",
    ),
    _AGGREGATE,
    Stage(
        "report",
        f"{_HERE}.score",
        inputs=("project", "train", "aggregate"),
        axes=("epsilon", "learner"),
        params=(
            "epsilon",
            "learner.label",
            "label",
            "project.judge",
            "report.definitions",
            *_ROLES,
        ),
        tables=("scores",),
        side="client (study)",
    ),
    Stage(
        "report",
        f"{_HERE}.baseline",
        inputs=("project",),
        axes=("epsilon",),
        params=(
            "epsilon",
            "label",
            "histogram.bins",
            "published.histogram",
            *_ROLES,
        ),
        tables=("scores",),
        side="client (study)",
    ),
)

# No baseline and no score: what only a study could draw or know is not asked for.
PRODUCTION = (
    Stage(
        "privatize",
        "curvote.protocols.stages.released",
        inputs=("ingest", "project"),
        axes=("epsilon",),
        params=("epsilon", "protocol", "project.judge", *_REPORT, *_WHO),
        plugins=(_MECHANISMS,),
        tables=("reports",),
        side="client -> server",
        message="report",
    ),
    _TRAIN,
    Stage(
        "evaluate",
        "curvote.protocols.stages.released",
        inputs=("ingest", "privatize", "train"),
        axes=("epsilon", "learner"),
        params=("epsilon", "protocol", *_WHO),
        tables=("votes",),
        side="client -> server",
        message="vote",
    ),
    _AGGREGATE,
)


def releases_reports(config: dict[str, Any], d: int) -> list[Release]:
    """Return a training client's message in words."""
    privatize = config["privatize"]
    share = label_share(privatize["label_share"], d)
    return [
        Release(
            "training client",
            f"one report: {d} noised numbers and a noised label",
            _report(config),
            "epsilon",
            f"epsilon x {(1 - share) / d:.3g} for each number,"
            f" epsilon x {share:.3g} for the label",
        )
    ]


def _report(config: dict[str, Any]) -> str:
    return f"{config['privatize']['mechanism']} and binary_rr"


def releases(config: dict[str, Any], d: int) -> list[Release]:
    """Return the messages of each client in words, for every epsilon of a pipeline."""
    return [
        *releases_reports(config, d),
        Release(
            "evaluation client",
            'one noised bit: "the classifier was right for me"',
            "binary_rr",
            "epsilon",
            "each judges one classifier, once, with the whole budget",
        ),
        Release(
            "evaluation client",
            f"a report as well: {d} noised numbers and a noised label",
            _report(config),
            "epsilon",
            "for voting, averaging and all_data, which learn from everybody's report",
            study_only=True,
        ),
        Release(
            "every client",
            "one noised label",
            "binary_rr",
            "epsilon",
            "for majority, the constant classifier that a method must beat",
            study_only=True,
        ),
        Release(
            "every client",
            f"{config['histogram']['bins']}^{d} noised numbers, one for each cell",
            "laplace",
            "epsilon",
            "for histogram; two of them depend on the record",
            study_only=True,
        ),
    ]
