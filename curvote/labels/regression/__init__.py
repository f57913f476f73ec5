"""Regression on private labels: noised numbers, learners on them, an honest score.

targets = noise_targets(y, bounds=(20, 120), epsilon=1.0, randomizer="piecewise")
model = PrivateLabelRegressor(epsilon=1.0, bounds=(20, 120)).fit(X, y)
score = squared_error(model, X_other, targets)
"""

from typing import TYPE_CHECKING

from curvote.base.lazy import exports

__all__ = ["NoisedTargets", "PrivateLabelRegressor", "noise_targets", "squared_error"]

if TYPE_CHECKING:
    from curvote.systems.labels.regression.regressor import PrivateLabelRegressor
    from curvote.systems.labels.regression.targets import (
        NoisedTargets,
        noise_targets,
        squared_error,
    )
else:
    __getattr__ = exports(
        __name__,
        {
            "NoisedTargets": "curvote.systems.labels.regression.targets",
            "PrivateLabelRegressor": "curvote.systems.labels.regression.regressor",
            "noise_targets": "curvote.systems.labels.regression.targets",
            "squared_error": "curvote.systems.labels.regression.targets",
        },
    )
