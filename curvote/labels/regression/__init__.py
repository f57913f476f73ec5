"""Regression on private labels: noised numbers, learners on them, an honest score.

targets = noise_targets(y, bounds=(20, 120), epsilon=1.0, randomizer="piecewise")
model = PrivateLabelRegressor(epsilon=1.0, bounds=(20, 120)).fit(X, y)
score = squared_error(model, X_other, targets)
"""

from typing import TYPE_CHECKING

from curvote.lazy import exports

__all__ = ["NoisedTargets", "PrivateLabelRegressor", "noise_targets", "squared_error"]

if TYPE_CHECKING:
    from curvote.labels.regression.noising import noise_targets
    from curvote.labels.regression.regressor import PrivateLabelRegressor
    from curvote.labels.regression.scoring import squared_error
    from curvote.labels.regression.targets import NoisedTargets
else:
    __getattr__ = exports(
        __name__,
        {
            "NoisedTargets": "targets",
            "PrivateLabelRegressor": "regressor",
            "noise_targets": "noising",
            "squared_error": "scoring",
        },
    )
