"""Stage learn: the candidates of one arrival, those before it and perhaps new ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from curvote.chain.stage import Columns, Rows, StageContext
from curvote.protocols.mrma.train import Problem, facts, fit_repetitions, make_problem
from curvote.server.weak import draw_subsets

__all__ = ["block", "facts"]


def block(many: Sequence[StageContext]) -> Iterator[Rows]:
    """Yield the table ``candidates``; a candidate keeps its number for ever.

    The first arrival trains ``train.count`` from its reports; a later one adds
    ``online.more`` from its own if the one before it saw a drop.
    """
    public = many[0].inputs["privatize"].metadata
    new = fit_repetitions(
        [_new_problems(context) for context in many], public, many[0].metadata
    )
    for context, columns in zip(many, new, strict=True):
        yield {"candidates": _append_candidates(context, columns)}


def _new_problems(context: StageContext) -> list[Problem]:
    """Return the problem of each new classifier."""
    count, arrival = _new_count(context), context.params["arrival"]
    if not count:
        return []
    reports = context.rows("privatize", "arriving")
    arrival_rows = np.flatnonzero(reports["arrival"] == arrival)
    rng = context.generator("draw", "train", block=arrival)
    samples = arrival_rows[
        draw_subsets(rng, len(arrival_rows), count, context.params["train.size"])
    ]
    return [make_problem(reports, rows) for rows in samples]


def _new_count(context: StageContext) -> int:
    if "update@previous" not in context.inputs:
        return int(context.params["train.count"])
    dropped = context.rows("update@previous", "history")["dropped"][-1]
    return int(context.params["online.more"]) if dropped else 0


def _append_candidates(context: StageContext, new: Columns) -> Columns:
    """Return the earlier candidates, then the new ones."""
    parts: list[Columns] = []
    if "learn@previous" in context.inputs:
        parts.append(context.rows("learn@previous", "candidates"))
    if new:
        birth = np.full(len(new["n"]), context.params["arrival"])
        parts.append(new | {"birth": birth})
    names = parts[0].keys() - {"learner"}
    columns = {name: np.concatenate([part[name] for part in parts]) for name in names}
    return {"learner": np.arange(len(columns["birth"])), **columns}
