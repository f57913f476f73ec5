"""Stage train: a regressor from public features and noised numbers, and its score."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Rows, StageContext
from curvote.labels.regression.regressor import PrivateLabelRegressor
from curvote.labels.regression.scoring import squared_error
from curvote.labels.regression.targets import NoisedTargets
from curvote.protocols.labels.records import rows_by_name, rows_without_codes
from curvote.protocols.labels.regression import asked

Array = NDArray[np.float64]


def one(context: StageContext) -> Rows:
    """Return the tables ``forecast`` and ``honest``."""
    features = context.rows("features", "features")
    names, X = features["record"], features["values"]
    numbers, holdout = (
        context.rows("privatize", it) for it in ("numbers", "held_numbers")
    )
    shapes = context.rows("privatize", "shape_numbers")["value"]
    targets = asked.with_values(
        asked.training_template(context, shapes), numbers["value"]
    )
    model = _fit_regressor(context, X[rows_by_name(names, numbers["record"])], targets)
    other_rows = rows_without_codes(
        names, np.concatenate([numbers["record"], holdout["record"]])
    )
    return {
        "forecast": {
            "record": names[other_rows],
            "value": model.predict(X[other_rows]),
            "mean": np.full(len(other_rows), _mean_number(targets)),
        },
        "honest": _honest_table(
            context, model, X[rows_by_name(names, holdout["record"])], holdout
        ),
    }


def _fit_regressor(
    context: StageContext, X: Array, targets: NoisedTargets
) -> PrivateLabelRegressor:
    seed = int(context.generator("train").integers(2**31))
    regressor = PrivateLabelRegressor(
        context.params["learner"]["name"],
        targets.epsilon,
        targets.bounds,
        random_state=seed,
    )
    return regressor.fit(X, targets)


def _mean_number(targets: NoisedTargets) -> float:
    """Return the mean of the noised numbers, within the bounds."""
    return float(np.clip(targets.decode().mean(), *targets.bounds))


def _honest_table(
    context: StageContext, model: PrivateLabelRegressor, X: Array, holdout: Columns
) -> Columns:
    """Return the mean squared error by numbers that nothing was learnt from."""
    score = squared_error(
        model, X, asked.with_values(asked.holdout_template(context), holdout["value"])
    )
    parts = {name: np.array([value]) for name, value in score._asdict().items()}
    scoring = np.array(["squared_error"], dtype=object)
    return {"scoring": scoring, **parts, "n": np.array([len(X)])}
