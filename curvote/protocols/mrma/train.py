"""Stage train: weak classifiers from reports, and the baselines that pool them all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curvote.chain.stage import Columns, Facts, Inputs, Params
from curvote.chain.streams import generator
from curvote.protocols.mrma.tables import REPORT_ARMS, WEAK_ARMS
from curvote.protocols.stage import Tables
from curvote.server.weak import draw, fit_problems, parts


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what was fitted; the Gram matrix makes coefficients a function space."""
    return {"learner": params["learner.name"], "params": params["learner.params"]}


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``weak``: all problems of the block are fitted as batches."""
    reports = inputs["privatize"]
    problems: list[tuple[np.ndarray, np.ndarray]] = []
    arms = []
    for replicate in replicates:
        rows = reports.columns("reports", replicate)
        indices, arm = _problems(rows, params, replicate)
        problems += [(rows["z"][i], rows["label"][i].astype(float)) for i in indices]
        arms.append(arm)
    return {"weak": weak_tables(problems, arms, reports.facts, params)}


def weak_tables(
    problems: list[tuple[np.ndarray, np.ndarray]],
    arms: list[np.ndarray],
    public: Facts,
    params: Params,
) -> list[Columns]:
    """Return the table ``weak`` of each replicate; its problems stand arm after arm.

    ``public`` holds the Gram matrix and the roughness of the basis.
    """
    fits = fit_problems(
        params["learner.name"],
        problems,
        gram=np.asarray(public["gram"]),
        roughness=np.asarray(public["roughness"]),
        **params["learner.params"],
    )
    columns = {
        "coef": fits.coef,
        "intercept": fits.intercept,
        "flagged": fits.flagged,
        "n": np.array([len(y) for _, y in problems]),
    }
    return _by_replicate(columns, arms)


def _problems(
    rows: Columns, params: Params, replicate: int
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return row indices of each problem of one replicate, and the arm of each."""
    count, size = params["train.count"], params["train.size"]
    mrma = np.flatnonzero(rows["arm"] == REPORT_ARMS.index("mrma"))
    drawn = draw(_rng(params, "draw", replicate), len(mrma), count, size)
    if len(mrma) == len(rows["arm"]):  # production: voters send no reports to pool
        return [*mrma[drawn]], np.zeros(count, dtype=np.int8)
    pooled = parts(_rng(params, "pool", replicate), len(rows["label"]), count)
    everybody = np.arange(len(rows["label"]))
    indices = [*mrma[drawn], *pooled, everybody]
    arm = np.repeat(np.arange(len(WEAK_ARMS), dtype=np.int8), [count, count, 1])
    return indices, arm


def _rng(params: Params, purpose: str, replicate: int) -> np.random.Generator:
    return generator(params["seed"], "train", purpose, replicate)


def _by_replicate(columns: Columns, arms: list[np.ndarray]) -> list[Columns]:
    ends = np.cumsum([len(arm) for arm in arms])[:-1]
    split = {name: np.split(values, ends) for name, values in columns.items()}
    return [
        {"arm": arm, "learner": _position(arm)}
        | {name: values[i] for name, values in split.items()}
        for i, arm in enumerate(arms)
    ]


def _position(arm: np.ndarray) -> np.ndarray:
    """Number the classifiers of each arm from 0; equal arms stand together."""
    first = np.searchsorted(arm, arm)
    return np.arange(len(arm)) - first
