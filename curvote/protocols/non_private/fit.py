"""Stage train without privacy: the same learners, on the clients' own numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curvote.chain.stage import Facts, Inputs, Params
from curvote.chain.streams import generator
from curvote.protocols.mrma.train import weak_tables
from curvote.protocols.stage import Tables
from curvote.protocols.study import study_clients
from curvote.server.weak import draw

Problem = tuple[np.ndarray, np.ndarray]


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what was fitted."""
    return {"learner": params["learner.name"], "params": params["learner.params"]}


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``weak``: each learner on its own draw of training clients."""
    project = inputs["project"]
    each = [_problems(replicate, inputs, params) for replicate in replicates]
    arms = [np.zeros(len(problems), dtype=np.int8) for problems in each]
    public = {
        "gram": project.facts["encoding"]["gram"],
        "roughness": project.facts["roughness"],
    }
    problems = [problem for mine in each for problem in mine]
    return {"weak": weak_tables(problems, arms, public, params)}


def _problems(replicate: int, inputs: Inputs, params: Params) -> list[Problem]:
    clients = study_clients(inputs["project"], params, replicate)
    mine = clients.roles["train"]
    rng = generator(params["seed"], "train", "draw", replicate)
    drawn = draw(rng, len(mine), params["train.count"], params["train.size"])
    return [(clients.z[rows], clients.labels[rows]) for rows in mine[drawn]]
