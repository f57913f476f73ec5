"""Arrays by name as one file, whose bytes depend on nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


def packed(arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Return a column of one file: uncompressed, without times, no objects in it."""
    made = BytesIO()
    np.savez(made, allow_pickle=False, **{n: arrays[n] for n in sorted(arrays)})
    return np.array([made.getvalue()], dtype=object)


def unpacked(data: bytes) -> Arrays:
    """Return the arrays that `packed` wrote."""
    with np.load(BytesIO(data), allow_pickle=False) as read:
        return {name: read[name] for name in read.files}
