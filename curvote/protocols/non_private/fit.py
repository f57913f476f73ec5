"""Stage train without privacy: the same learners, on the clients' own numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from curvote.chain.stage import Here, Rows
from curvote.protocols.mrma.train import Problem, facts, fitted
from curvote.protocols.study import clients_of
from curvote.server.weak import draw

__all__ = ["block", "facts"]


def block(many: Sequence[Here]) -> Iterator[Rows]:
    """Yield the table ``fitted``: each learner on its own draw of training clients."""
    project = many[0].inputs["project"].facts
    public = {"gram": project["encoding"]["gram"], "roughness": project["roughness"]}
    each = [_problems(here) for here in many]
    for columns in fitted(each, public, many[0].facts):
        yield {"fitted": {"learner": np.arange(len(columns["n"]))} | columns}


def _problems(here: Here) -> list[Problem]:
    clients, params = clients_of(here), here.params
    mine, sizes = clients.roles["train"], (params["train.count"], params["train.size"])
    drawn = mine[draw(here.generator("draw", "train"), len(mine), *sizes)]
    return [(clients.z[rows], clients.signs[rows]) for rows in drawn]
