"""The box around one record in which its answer stays: the library's one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from curvote.entropy import Entropy, SystemEntropy
from curvote.utility.engines.base import Question
from curvote.utility.engines.choosing import engine_for
from curvote.utility.robustness.box import Box, box
from curvote.utility.robustness.trials import box_by_trials
from curvote.utility.setting import setting
from curvote.validate import FloatArray


@dataclass(frozen=True)
class RobustBox:
    """The closed box ``low`` (s,) to ``high`` (s,) around a record, in model units.

    ``radius`` is a share of the bounds' widths, the same in every direction.
    ``certified``: the answer certainly stays everywhere inside. Where it is not, at
    most a hundredth of all points inside get another answer, at a risk of .05.
    """

    radius: float
    low: FloatArray
    high: FloatArray
    certified: bool
    queries: int


def robust_box(
    model: Any,
    record: ArrayLike,
    *,
    sensitive: Sequence[int],
    bounds: ArrayLike,
    entropy: Entropy | None = None,
) -> RobustBox:
    """Return how far the ``sensitive`` features of a record can move.

    Parameters
    ----------
    model : object
        A fitted classifier, or a function that answers.
    record : array (D,)
        In the model's units.
    sensitive : sequence of int
        The columns that may move, s of them.
    bounds : array (s, 2)
        One (low, high) for each, public.
    entropy : Entropy or None, default=None
        Of random points, where the kind of model is unknown; None is the operating
        system's. Nothing is random where it is known.

    Returns
    -------
    RobustBox
        In which the answer stays.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.array([[0.1], [0.2], [0.8], [0.9]]), [0, 0, 1, 1]
    >>> model = LogisticRegression().fit(X, y)
    >>> box = robust_box(model, [0.1], sensitive=[0], bounds=[(0, 1)])
    >>> print(box.high.round(2), box.certified)
    [0.5] True
    """
    asked = setting(
        model, np.atleast_2d(record), sensitive=sensitive, bounds=bounds
    ).question
    found = _known(asked) or box_by_trials(asked, entropy or SystemEntropy())
    return RobustBox(
        float(found.radius[0]),
        found.low[0],
        found.high[0],
        bool(found.certified[0]),
        int(found.queries[0]),
    )


def _known(question: Question) -> Box | None:
    engine, _ = engine_for(question)
    surface = engine.surface(question)
    try:
        return box(surface, question.values, bounds=question.bounds)
    except NotImplementedError:
        return None
