"""Stage learn: the candidates of one arrival, those before it and perhaps new ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from curvote.chain.stage import Columns, Here, Rows
from curvote.protocols.mrma.train import Problem, facts, fitted, problem
from curvote.server.weak import draw

__all__ = ["block", "facts"]


def block(many: Sequence[Here]) -> Iterator[Rows]:
    """Yield the table ``candidates``; a candidate keeps its number for ever.

    The first arrival trains ``train.count`` from its reports; a later one adds
    ``online.more`` from its own if the one before it saw a drop.
    """
    public = many[0].inputs["privatize"].facts
    new = fitted([_problems(here) for here in many], public, many[0].facts)
    for here, columns in zip(many, new, strict=True):
        yield {"candidates": _joined(here, columns)}


def _problems(here: Here) -> list[Problem]:
    """Return what each new classifier learns from."""
    count, arrival = _wanted(here), here.params["arrival"]
    if not count:
        return []
    reports = here.rows("privatize", "arriving")
    mine = np.flatnonzero(reports["arrival"] == arrival)
    rng = here.generator("draw", "train", block=arrival)
    drawn = mine[draw(rng, len(mine), count, here.params["train.size"])]
    return [problem(reports, rows) for rows in drawn]


def _wanted(here: Here) -> int:
    if "update@previous" not in here.inputs:
        return int(here.params["train.count"])
    fell = here.rows("update@previous", "history")["dropped"][-1]
    return int(here.params["online.more"]) if fell else 0


def _joined(here: Here, new: Columns) -> Columns:
    """Return the candidates that were there, then the new ones."""
    parts: list[Columns] = []
    if "learn@previous" in here.inputs:
        parts.append(here.rows("learn@previous", "candidates"))
    if new:
        birth = np.full(len(new["n"]), here.params["arrival"])
        parts.append(new | {"birth": birth})
    names = parts[0].keys() - {"learner"}
    columns = {name: np.concatenate([part[name] for part in parts]) for name in names}
    return {"learner": np.arange(len(columns["birth"])), **columns}
