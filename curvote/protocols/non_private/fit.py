"""Stage train without privacy: the same learners, on the clients' own numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from curvote.chain.stage import Rows, StageContext
from curvote.protocols.classifiers import classifier_columns
from curvote.protocols.mrma.train import Problem, facts, fit_repetitions
from curvote.protocols.non_private.several import make_estimator
from curvote.protocols.roles import EVERYBODY
from curvote.protocols.study import study_clients
from curvote.server.several import class_scores
from curvote.server.weak import draw_subsets

__all__ = ["block", "facts"]


def block(many: Sequence[StageContext]) -> Iterator[Rows]:
    """Yield the table ``fitted``: each learner on its own draw of training clients.

    Without ``train``, and of more than two classes, there is one, on everybody who
    would report.
    """
    project = many[0].inputs["project"].metadata
    if len(project["classes"]) > 2:
        yield from map(_fit_classes, many)
        return
    basis = {"gram": project["encoding"]["gram"], "roughness": project["roughness"]}
    problems = [_clean_problems(context) for context in many]
    for columns in fit_repetitions(problems, basis, many[0].metadata):
        yield {"fitted": {"learner": np.arange(len(columns["n"]))} | columns}


def _clean_problems(context: StageContext) -> list[Problem]:
    clients, params = study_clients(context), context.params
    if params["train.count"] is None:
        rows = EVERYBODY.rows(clients.roles)
        return [(clients.z[rows], clients.signs[rows])]
    training_rows, sizes = (
        clients.roles["train"],
        (params["train.count"], params["train.size"]),
    )
    samples = training_rows[
        draw_subsets(context.generator("draw", "train"), len(training_rows), *sizes)
    ]
    return [(clients.z[rows], clients.signs[rows]) for rows in samples]


def _fit_classes(context: StageContext) -> Rows:
    """Return the table ``fitted`` with a row for each class."""
    clients, learner = study_clients(context), context.metadata
    rows = EVERYBODY.rows(clients.roles)
    n_classes = len(context.inputs["project"].metadata["classes"])
    model = make_estimator(learner["learner"], learner["params"])
    line = class_scores(model, clients.z[rows], clients.labels[rows], n_classes)
    columns = classifier_columns(line, len(rows))
    constants = {
        "learner": np.zeros(n_classes, dtype=np.int64),
        "flagged": np.zeros(n_classes, bool),
    }
    return {"fitted": columns | constants}
