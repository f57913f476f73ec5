"""Arrays by name as one file, whose bytes depend on nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


def pack_arrays(arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Return arrays as a column of one uncompressed file without times."""
    buffer = BytesIO()
    np.savez(buffer, allow_pickle=False, **{n: arrays[n] for n in sorted(arrays)})
    return np.array([buffer.getvalue()], dtype=object)


def unpack_arrays(data: bytes) -> Arrays:
    """Return the arrays of a packed file."""
    with np.load(BytesIO(data), allow_pickle=False) as read:
        return {name: read[name] for name in read.files}
