"""Stage train: a regressor from public features and noised numbers, and its score."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Here, Rows
from curvote.labels.regression.regressor import PrivateLabelRegressor
from curvote.labels.regression.scoring import squared_error
from curvote.labels.regression.targets import NoisedTargets
from curvote.protocols.labels.records import rows_of, without
from curvote.protocols.labels.regression import asked

Array = NDArray[np.float64]


def one(here: Here) -> Rows:
    """Return the tables ``forecast`` and ``honest``."""
    features = here.rows("features", "features")
    names, X = features["record"], features["values"]
    sent, held = (here.rows("privatize", it) for it in ("numbers", "held_numbers"))
    shapes = here.rows("privatize", "shape_numbers")["value"]
    targets = asked.heard(asked.learnt(here, shapes), sent["value"])
    model = _fitted(here, X[rows_of(names, sent["record"])], targets)
    others = without(names, np.concatenate([sent["record"], held["record"]]))
    return {
        "forecast": {
            "record": names[others],
            "value": model.predict(X[others]),
            "mean": np.full(len(others), _mean(targets)),
        },
        "honest": _honest(here, model, X[rows_of(names, held["record"])], held),
    }


def _fitted(here: Here, X: Array, targets: NoisedTargets) -> PrivateLabelRegressor:
    seed = int(here.generator("train").integers(2**31))
    made = PrivateLabelRegressor(
        here.params["learner"]["name"],
        targets.epsilon,
        targets.bounds,
        random_state=seed,
    )
    return made.fit(X, targets)


def _mean(targets: NoisedTargets) -> float:
    """Return the mean of the noised numbers, within the bounds."""
    return float(np.clip(targets.decode().mean(), *targets.bounds))


def _honest(
    here: Here, model: PrivateLabelRegressor, X: Array, held: Columns
) -> Columns:
    """Return the mean squared error by numbers that nothing was learnt from."""
    score = squared_error(model, X, asked.heard(asked.held(here), held["value"]))
    parts = {name: np.array([value]) for name, value in score._asdict().items()}
    scoring = np.array(["squared_error"], dtype=object)
    return {"scoring": scoring, **parts, "n": np.array([len(X)])}
