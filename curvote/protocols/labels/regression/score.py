"""Stage report of a study: what only the true numbers of tested records tell."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from curvote.chain.measure import SCORES
from curvote.chain.stage import Here, Rows
from curvote.labels.regression.learners import made
from curvote.protocols.labels.measured import Score, score_table
from curvote.protocols.labels.messages import names_of
from curvote.protocols.labels.records import rows_of
from curvote.protocols.labels.regression.asked import bounds_of
from curvote.protocols.labels.regression.methods import (
    HONEST,
    LEARNT,
    MEAN,
    MSE,
    RMSE,
    STATED,
)
from curvote.protocols.non_private.methods import CLEAN
from curvote.protocols.roles import played

Array = NDArray[np.float64]


def one(here: Here) -> Rows:
    """Return the table ``scores``."""
    return {SCORES.name: score_table(_scores(here))}


def _scores(here: Here) -> Iterator[Score]:
    clients = here.rows("ingest", "clients")
    tested = played(clients, here.params, here.number)["test"]
    y, told = clients["target"][tested], here.rows("train", "forecast")
    at = rows_of(told["record"], names_of(clients)[tested])
    yield from _off(LEARNT.name, told["value"][at] - y)
    yield from _off(MEAN.name, told["mean"][at] - y)
    yield from _off(CLEAN.name, _clean(here, tested) - y)
    honest = here.rows("train", "honest")
    for metric, column in ((HONEST, "value"), (STATED, "se")):
        yield Score(LEARNT.name, metric.name, float(honest[column][0]))


def _off(method: str, errors: Array) -> Iterator[Score]:
    square = float(np.mean(errors**2))
    yield Score(method, RMSE.name, square**0.5)
    yield Score(method, MSE.name, square)


def _clean(here: Here, tested: NDArray[np.int64]) -> Array:
    """Return what the same learner says that has seen the numbers themselves."""
    clients = here.rows("ingest", "clients")
    mine = played(clients, here.params, here.number)["train"]
    X = here.rows("features", "features")["values"]
    seed = int(here.generator("train").integers(2**31))
    learner = made(here.params["learner"]["name"], len(mine), seed)
    told = learner.fit(X[mine], clients["target"][mine]).predict(X[tested])
    return np.asarray(np.clip(told, *bounds_of(here)))
