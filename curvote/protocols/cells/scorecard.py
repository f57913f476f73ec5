"""From tables of questions and answers to the one of scores, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Facts, Here, Inputs, Params
from curvote.representation.partition import Partitions
from curvote.server.cells import Shares, shares

Array = NDArray[np.float64]


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what decoding knows: d, epsilon and how many classes there are."""
    sent = inputs["privatize"].facts
    n_classes = len(inputs["project"].facts["classes"])
    return {"d": sent["d"], "epsilon": sent["epsilon"], "n_classes": n_classes}


def tallied(here: Here) -> tuple[Partitions, Shares]:
    """Return the questions of one repetition, and what their answers say."""
    public = here.facts
    asked = Partitions.read(here.rows("train", "questions"), public["d"])
    sent = here.rows("privatize", "answers")
    shape = asked.count, asked.cells, public["n_classes"]
    told = shares(sent["question"], sent["answer"], shape, public["epsilon"])
    return asked, told


def card(asked: Partitions, scores: Array, n: Array) -> Columns:
    """Return table ``scorecard``: cuts, scores (Q, C, K) and answers (Q,) to each."""
    own = {"score": scores.reshape(asked.count, -1), "n": n.astype(np.int64)}
    return asked.columns | own


def read(
    rows: Mapping[str, NDArray[Any]], d: int, n_classes: int
) -> tuple[Partitions, Array]:
    """Return the questions and scores (Q, C, K) of table ``scorecard``."""
    asked = Partitions.read(rows, d)
    return asked, rows["score"].reshape(asked.count, asked.cells, n_classes)
