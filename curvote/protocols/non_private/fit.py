"""Stage train without privacy: the same learners, on the clients' own numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from curvote.chain.stage import Here, Rows
from curvote.protocols.classifiers import classifier
from curvote.protocols.mrma.train import Problem, facts, fitted
from curvote.protocols.non_private.several import made
from curvote.protocols.roles import EVERYBODY
from curvote.protocols.study import clients_of
from curvote.server.several import scores
from curvote.server.weak import draw

__all__ = ["block", "facts"]


def block(many: Sequence[Here]) -> Iterator[Rows]:
    """Yield the table ``fitted``: each learner on its own draw of training clients.

    Without ``train``, and of more than two classes, there is one, on everybody who
    would report.
    """
    project = many[0].inputs["project"].facts
    if len(project["classes"]) > 2:
        yield from map(_of_several, many)
        return
    public = {"gram": project["encoding"]["gram"], "roughness": project["roughness"]}
    each = [_problems(here) for here in many]
    for columns in fitted(each, public, many[0].facts):
        yield {"fitted": {"learner": np.arange(len(columns["n"]))} | columns}


def _problems(here: Here) -> list[Problem]:
    clients, params = clients_of(here), here.params
    if params["train.count"] is None:
        rows = EVERYBODY.rows(clients.roles)
        return [(clients.z[rows], clients.signs[rows])]
    mine, sizes = clients.roles["train"], (params["train.count"], params["train.size"])
    drawn = mine[draw(here.generator("draw", "train"), len(mine), *sizes)]
    return [(clients.z[rows], clients.signs[rows]) for rows in drawn]


def _of_several(here: Here) -> Rows:
    """Return the table ``fitted`` with a row for each class."""
    clients, learner = clients_of(here), here.facts
    rows = EVERYBODY.rows(clients.roles)
    k = len(here.inputs["project"].facts["classes"])
    model = made(learner["learner"], learner["params"])
    line = scores(model, clients.z[rows], clients.labels[rows], k)
    columns = classifier(line, len(rows))
    alone = {"learner": np.zeros(k, dtype=np.int64), "flagged": np.zeros(k, bool)}
    return {"fitted": columns | alone}
