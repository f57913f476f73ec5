"""Mean squared error of a regressor from noised labels: their noise is taken out."""

from __future__ import annotations

from typing import Any

import numpy as np

from curvote.labels.regression.targets import NoisedTargets
from curvote.labels.score import Score, mean_score


def squared_error(model: Any, X: Any, targets: NoisedTargets) -> Score:
    """Return the mean squared error of ``model`` on records whose labels nobody shows.

    Parameters
    ----------
    model : a fitted regressor, or its predictions (n,)
        It must not have seen the targets.
    X : array (n, d)
        Public features, as the model wants them.
    targets : NoisedTargets
        One for each record.

    Returns
    -------
    Score
        ``value`` is unbiased where `NoisedTargets.squared_errors` is, in the labels'
        unit squared, and may be below 0 where the noise is large; ``low`` to ``high``
        holds the true error in 95 of 100 cases.

    Examples
    --------
    >>> import numpy as np
    >>> from curvote.labels import noise_targets
    >>> y = np.tile([40.0, 60.0], 5000)
    >>> targets = noise_targets(y, bounds=(0, 100), epsilon=4.0, random_state=0)
    >>> score = squared_error(np.full(10000, 50.0), None, targets)
    >>> score.low < 100 < score.high  # the true one
    True
    """
    predictions = model.predict(X) if hasattr(model, "predict") else np.asarray(model)
    return mean_score(targets.squared_errors(predictions))
