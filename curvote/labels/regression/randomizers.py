"""Choice of a number's randomizer: by name, or by what is public."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from curvote import validate
from curvote.labels.regression.binning import optimal_binning
from curvote.labels.regression.readings import cell_middles
from curvote.mechanisms.hybrid import Hybrid
from curvote.mechanisms.piecewise import Piecewise
from curvote.mechanisms.rr_on_bins import RROnBins
from curvote.validate import FloatArray

AUTO: Final = "auto"
ON_BINS: Final = RROnBins.name
# By their classes, so that their code counts wherever a randomizer may be named.
RANDOMIZERS: Final = (Piecewise.name, Hybrid.name, ON_BINS)
# The variance of a label that is uniform in its bounds, mapped to [-1, 1].
_UNIFORM: Final = 1 / 3


def randomizer_name(randomizer: str, epsilon: float) -> str:
    """Return the name of the mechanism that a randomizer's name stands for.

    ``auto`` looks at epsilon only: ``piecewise``, which is unbiased whatever the
    labels, where its noise on a label uniform in the bounds has at most that label's
    variance (from epsilon 2.9 on), else ``rr_on_bins``.
    """
    validate.one_of((AUTO, *RANDOMIZERS), randomizer=randomizer)
    if randomizer != AUTO:
        return randomizer
    at_0, at_1 = Piecewise(epsilon=epsilon).variance(np.array([0.0, 1.0]))
    mean = at_0 + (at_1 - at_0) * _UNIFORM
    return Piecewise.name if mean <= _UNIFORM else ON_BINS


def bin_params(prior: FloatArray, epsilon: float) -> Mapping[str, Any]:
    """Return the parameters of ``rr_on_bins``, optimal for shares of equal cells."""
    m = len(prior)
    binning = optimal_binning(cell_middles(m), prior, epsilon)
    cuts = 2 * binning.starts[1:] / m - 1
    return {"cuts": tuple(cuts.tolist()), "answers": tuple(binning.answers.tolist())}
