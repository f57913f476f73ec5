"""Ridge regression on pooled contrasts and a pooled second moment of known noise.

What `curvote.server.directions` does with the means of private reports is done here
with those of servers: both are unbiased, of known variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from curvote.shrinkage import NoisyMoments, shrink_second_moment, solve_weights
from curvote.transfer.forms.base import Array, Refine

if TYPE_CHECKING:
    from curvote.transfer.sides import Contrasts

# What the number of records adds to a second moment, over the coordinates of a row:
# it is believed where it stands out from that, too.
SAMPLING = 2.0


def ridge_refinement(
    sides: Sequence[Contrasts], shares: Array, public: Array
) -> Refine:
    """Return the map from a contrast row (p,) to its row of ridge regression.

    ``shares`` (J,) weigh the ``sides``, all of which have a second moment; ``public``
    (p,) is the diagonal of the one that would be expected.
    """
    seconds = [side.second for side in sides if side.second is not None]
    errors = [side.second_noise + SAMPLING / side.n / len(public) for side in sides]
    noise = float(shares**2 @ errors)
    second = shrink_second_moment(np.tensordot(shares, seconds, 1), noise, public)
    errors = [side.noise + side.sampling / len(public) for side in sides]
    contrast_noise = float(shares**2 @ errors)

    def refine(rows: Array) -> Array:
        return np.stack(
            [
                solve_weights(NoisyMoments(row[None], contrast_noise, second))
                for row in rows
            ]
        )

    return refine
