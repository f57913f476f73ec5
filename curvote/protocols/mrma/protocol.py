"""The MRMA chain as data: which stages, what each reads, what each client releases."""

from __future__ import annotations

from typing import Any

from curvote.privacy import Budget, label_share
from curvote.protocols.stage import Release, Stage

_HERE = "curvote.protocols.mrma"
_LEARNERS = ("curvote.server.learners.registry:LEARNERS", "learner.name")
_MECHANISMS = ("curvote.mechanisms.registry:MECHANISMS", "privatize.mechanism")
_ROLES = ("clients", "source.groups", "seed", "replicates")

STAGES = (
    Stage(
        "privatize",
        f"{_HERE}.privatize",
        inputs=("project",),
        axes=("epsilon",),
        params=("epsilon", "privatize.mechanism", "privatize.label_share", *_ROLES),
        plugins=(_MECHANISMS,),
        tables=("reports", "labels"),
        side="client -> server",
    ),
    Stage(
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
    ),
    Stage(
        "evaluate",
        f"{_HERE}.evaluate",
        inputs=("project", "train"),
        axes=("epsilon", "learner"),
        params=("epsilon", "project.judge", *_ROLES),
        tables=("votes",),
        side="client -> server",
    ),
    Stage(
        "aggregate",
        f"{_HERE}.aggregate",
        inputs=("evaluate",),
        axes=("epsilon", "learner"),
        params=(
            "epsilon",
            "aggregate.cutoff",
            "aggregate.when_none_pass",
            "replicates",
        ),
        tables=("ensemble",),
        side="server",
    ),
    Stage(
        "report",
        f"{_HERE}.score",
        inputs=("project", "train", "aggregate"),
        axes=("epsilon", "learner"),
        params=("epsilon", "learner.label", "protocol", "project.judge", *_ROLES),
        tables=("scores",),
        side="client (study)",
    ),
    Stage(
        "report",
        f"{_HERE}.baseline",
        inputs=("project", "privatize"),
        axes=("epsilon",),
        params=("epsilon", "protocol", *_ROLES),
        tables=("scores",),
        side="client (study)",
    ),
)


def releases(config: dict[str, Any], d: int, epsilon: float) -> list[Release]:
    """Return what each client lets out at one ``epsilon``, in words."""
    privatize = config["privatize"]
    label, features = Budget(epsilon).split(label_share(privatize["label_share"], d))
    return [
        Release(
            "training client",
            f"one report: {d} noised numbers",
            privatize["mechanism"],
            features.epsilon,
            f"{features.epsilon / d:.3g} for each number",
        ),
        Release(
            "training client",
            "and its noised label, in the same report",
            "binary_rr",
            label.epsilon,
            "label and numbers together spend the whole budget",
        ),
        Release(
            "evaluation client",
            'one noised bit: "the classifier was right for me"',
            "binary_rr",
            epsilon,
            "each judges one classifier, once, with the whole budget",
        ),
        Release(
            "every client, in the comparison only",
            "one more report (voting, averaging, all_data)",
            privatize["mechanism"],
            epsilon,
            "study only: clients that also vote would spend a second budget",
        ),
        Release(
            "every client, in the comparison only",
            "one noised label (majority)",
            "binary_rr",
            epsilon,
            "study only: the constant classifier that every method must beat",
        ),
    ]
