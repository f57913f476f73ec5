"""Stage learn: the candidates of one arrival, those before it and perhaps new ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curvote.chain.stage import Columns, Facts, Inputs, Params
from curvote.chain.streams import sequence
from curvote.protocols.stage import Tables
from curvote.server.weak import draw, fit_problems


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what is fitted, where anything is."""
    return {"learner": params["learner.name"], "params": params["learner.params"]}


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``candidates``; a candidate keeps its number for ever.

    The first arrival trains ``train.count`` from its reports; a later one adds
    ``online.more`` from its own if the one before it saw a drop.
    """
    problems = [_problems(replicate, inputs, params) for replicate in replicates]
    new = _fitted(problems, inputs, params)
    return {
        "candidates": [
            _joined(replicate, inputs, columns)
            for replicate, columns in zip(replicates, new, strict=True)
        ]
    }


def _problems(
    replicate: int, inputs: Inputs, params: Params
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the reports and labels that each new classifier learns from."""
    count = _wanted(replicate, inputs, params)
    if not count:
        return []
    rows = inputs["privatize"].columns("arriving", replicate)
    mine = np.flatnonzero(rows["arrival"] == params["arrival"])
    # One stream for each arrival, which stands where others have blocks of clients.
    place = (params["seed"], "train", "draw", replicate, params["arrival"])
    rng = np.random.default_rng(sequence(*place))
    drawn = mine[draw(rng, len(mine), count, params["train.size"])]
    return [(rows["z"][i], rows["label"][i].astype(float)) for i in drawn]


def _wanted(replicate: int, inputs: Inputs, params: Params) -> int:
    previous = inputs.get("update@previous")
    if previous is None:
        return int(params["train.count"])
    fell = previous.columns("history", replicate)["dropped"][-1]
    return int(params["online.more"]) if fell else 0


def _fitted(
    problems: list[list[tuple[np.ndarray, np.ndarray]]], inputs: Inputs, params: Params
) -> list[Columns]:
    """Fit the problems of all replicates as one batch; some may have none."""
    every = [problem for mine in problems for problem in mine]
    if not every:
        return [{} for _ in problems]
    public = inputs["privatize"].facts
    fits = fit_problems(
        params["learner.name"],
        every,
        gram=np.asarray(public["gram"]),
        roughness=np.asarray(public["roughness"]),
        **params["learner.params"],
    )
    columns = {
        "coef": fits.coef,
        "intercept": fits.intercept,
        "birth": np.full(len(every), params["arrival"]),
        "n": np.array([len(labels) for _, labels in every]),
        "flagged": fits.flagged,
    }
    ends = np.cumsum([len(mine) for mine in problems])
    return [
        {name: values[end - len(mine) : end] for name, values in columns.items()}
        for mine, end in zip(problems, ends, strict=True)
    ]


def _joined(replicate: int, inputs: Inputs, new: Columns) -> Columns:
    """Return the candidates that were there, then the new ones."""
    previous = inputs.get("learn@previous")
    parts = [previous.columns("candidates", replicate)] if previous else []
    parts += [new] if new else []
    names = parts[0].keys() - {"learner"}
    columns = {name: np.concatenate([part[name] for part in parts]) for name in names}
    return {"learner": np.arange(len(columns["birth"])), **columns}
