"""Robustness of a record: boxes in which its answer stays, and bounds from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from curvote.entropy import Entropy, SystemEntropy
from curvote.utility.engines.base import Question
from curvote.utility.engines.choosing import choose_engine
from curvote.utility.robustness.box import Box, certify_box
from curvote.utility.robustness.trials import box_by_trials
from curvote.utility.setting import make_setting
from curvote.validate import FloatArray


@dataclass(frozen=True)
class RobustBox:
    """Closed box ``low`` (s,) to ``high`` (s,) around a record, in model units.

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
    """Return the box in which the ``sensitive`` features of a record can move.

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
    question = make_setting(
        model, np.atleast_2d(record), sensitive=sensitive, bounds=bounds
    ).question
    result = _certified_box(question) or box_by_trials(
        question, entropy or SystemEntropy()
    )
    return RobustBox(
        float(result.radius[0]),
        result.low[0],
        result.high[0],
        bool(result.certified[0]),
        int(result.queries[0]),
    )


def _certified_box(question: Question) -> Box | None:
    """Return the certified box, None where the engine cannot tell."""
    engine, _ = choose_engine(question)
    surface = engine.surface(question)
    try:
        return certify_box(surface, question.values, bounds=question.bounds)
    except NotImplementedError:
        return None
