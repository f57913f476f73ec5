"""Warning filters: one lock for all threads, and warnings of values out of bounds.

Whoever changes the filters or listens to what is warned of holds `FILTERS` meanwhile:
otherwise one thread hears what another does, or leaves its filters to everybody.
"""

import threading
import warnings
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

FILTERS: Final = threading.RLock()
MANY_OUTSIDE: Final = 0.01  # of a column's values; `check` of a file remarks on it, too
_COLUMNS = 5  # that a warning names


def warn_outside(
    values: ArrayLike,
    bounds: tuple[ArrayLike, ArrayLike],
    names: Sequence[Any],
    what: str,
    *,
    max_share: float = MANY_OUTSIDE,
    depth: int = 3,
) -> None:
    """Warn of columns whose values lie outside their public bounds.

    ``values`` are (n, d), each end (d,) or a number; ``what`` says what becomes of
    values outside, and what to state, where they are more than the share ``max_share``
    of a column. Shares are the data's own, without noise: they are for the holder of
    the data who made the call, and nothing may keep them.
    """
    lower, upper = bounds
    array = np.asarray(values)
    share = ((array < lower) | (array > upper)).mean(axis=0)
    beyond = [int(i) for i in np.argsort(-share, kind="stable") if share[i] > max_share]
    if not beyond:
        return
    described = ", ".join(
        f"{names[i]} {100 * share[i]:.1f} %" for i in beyond[:_COLUMNS]
    )
    more = f" and {len(beyond) - _COLUMNS} more" * (len(beyond) > _COLUMNS)
    warnings.warn(
        f"values beyond what is stated ({described}{more}): {what} These shares"
        " are read"
        " from the data without noise: they are for its holder, and stand in no model.",
        UserWarning,
        stacklevel=depth,
    )
