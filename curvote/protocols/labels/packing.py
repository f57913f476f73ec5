"""Models as bytes: plain arrays and known classes, nothing that is run on reading."""

from __future__ import annotations

from typing import Any

from numpy import array
from numpy.typing import NDArray


def packed(model: Any) -> NDArray[Any]:
    """Return a column of one file, the model."""
    import skops.io

    return array([skops.io.dumps(model)], dtype=object)


def unpacked(data: bytes) -> Any:
    """Return the model that `packed` wrote; it stands in a store that checks bytes."""
    import skops.io

    return skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))
