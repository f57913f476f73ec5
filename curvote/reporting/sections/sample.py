"""Page section of curves: from a record to the numbers that are sent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.classes import Classes
from curvote.errors import InternalError
from curvote.reporting.data import FloatArray
from curvote.representation.rescale import UNBOUNDED_RESCALINGS


@dataclass(frozen=True, eq=False)
class CurveSample:
    """Records that may be shown: volunteers' (public by consent) or simulated ones.

    ``grid[T]`` in ``unit`` over ``domain``; ``curves[n, T]`` as recorded,
    ``fitted[n, T]`` their projections, ``z[n, d]`` before noise,
    ``labels[n]`` the places in ``classes``, two or more. ``basis`` and
    ``rescale`` are words, such as "4 cubic B-splines".
    """

    grid: FloatArray
    unit: str
    domain: tuple[float, float]
    curves: FloatArray
    fitted: FloatArray
    z: FloatArray
    labels: NDArray[np.int64]
    classes: Classes
    basis: str
    rescale: str
    who: str

    def __post_init__(self) -> None:
        if self.who not in ("volunteers", "simulated"):
            raise InternalError(f"records of {self.who!r} are not public: not drawn")
        shape = (len(self.labels), len(self.grid))
        if self.curves.shape != shape or self.fitted.shape != shape:
            raise InternalError(
                f"curves {self.curves.shape}, fitted"
                f" {self.fitted.shape}: both must be {shape}"
            )
        if len(self.z) != len(self.labels):
            raise InternalError(f"z holds {len(self.z)} rows, not {len(self.labels)}")

    @property
    def bounded(self) -> bool:
        """Whether z lies in [-1, 1]; a direction needs no bounds."""
        return self.rescale.partition(" ")[0] not in UNBOUNDED_RESCALINGS
