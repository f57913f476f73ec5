"""What the target has: the releases of all servers, and models that combine them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from curvote.chain.stage import Columns, Facts, Here, Inputs, Params
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.transfer import stated
from curvote.protocols.transfer.methods import ADAPT_TAR, STATED
from curvote.transfer.combination import combine
from curvote.transfer.model import Model
from curvote.transfer.releasing import Release, received
from curvote.transfer.task import Task

Sent = list[Release]
# What reads the settings that decide how releases are combined.
PARAMS = ("told", "target", "transfer.weights", "transfer.decide", "methods", "seed")
_FROM = "privatize@"


def task(public: Facts, params: Params) -> Task:
    """Return what all servers of a cell are asked together."""
    return stated.task(public, params["told"], params)


def here(at: Here) -> tuple[Task, Sent]:
    """Return what was asked and released in one repetition of a stage."""
    asked = task(at.inputs["project"].facts, at.params)
    names = [name for name in at.inputs if name.startswith(_FROM)]
    return asked, releases(asked, (at.rows(name, "releases") for name in names))


def about(inputs: Inputs) -> int:
    """Return how many records all releases of the first repetition are about."""
    sent = (inputs[name] for name in inputs if name.startswith(_FROM))
    return sum(int(one.columns("releases", (0,))["n"].sum()) for one in sent)


def releases(asked: Task, tables: Iterable[Columns]) -> Sent:
    """Return what was released, checked as if it had come by envelope."""
    return [_release(asked, rows) for rows in tables if len(rows["n"])]


def _release(asked: Task, rows: Columns) -> Release:
    own = asked.only(str(rows["server"][0]))
    return received(own, int(rows["n"][0]), rows["values"][0].astype(np.int64))


def model(asked: Task, sent: Sent, method: str, params: Params) -> Model:
    """Return the classifier of one method; the majority is that of the target."""
    rules = {STATED.name: params["transfer.weights"], MAJORITY.name: ADAPT_TAR.name}
    return combine(
        asked,
        sent,
        target=params["target"],
        weights=rules.get(method, method),
        decide=params["transfer.decide"],
    )
