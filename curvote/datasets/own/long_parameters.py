"""Long-format curves of a user: settings, rows, segments and one pass over a file."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from curvote.chain.settings import Strict
from curvote.datasets.frames import Points
from curvote.datasets.own.given import CsvForm
from curvote.datasets.own.labelled import Labelled

Text = Annotated[str, Field(min_length=1)]


class Grid(Strict):
    """The public grid: ``points`` equidistant times from ``start`` to ``stop``."""

    start: FiniteFloat
    stop: FiniteFloat
    points: Points

    @field_validator("stop")
    @classmethod
    def _check_increasing(cls, stop: float, info: ValidationInfo) -> float:
        if not info.data.get("start", -np.inf) < stop:
            raise PydanticCustomError("order", "it must be above start")
        return stop


class Gaps(Strict):
    """The longest allowed time, in ``unit``, without a measurement."""

    most: Annotated[FiniteFloat, Field(gt=0)]


class Parameters(Labelled, CsvForm):
    """Settings of ``source:``: file, columns, classes, grid, bounds, gaps.

    ``dates`` is the form of date-times that are not written as 2026-03-30 08:15, as
    ``%d.%m.%Y %H:%M``.
    """

    name: Literal["curves"] = "curves"
    path: Text
    id: Text
    time: Text
    value: Text
    label: Text
    grid: Grid
    unit: Text
    bounds: tuple[FiniteFloat, FiniteFloat]
    gaps: Gaps
    dates: Text | None = None

    @field_validator("label")
    @classmethod
    def _check_columns(cls, label: str, info: ValidationInfo) -> str:
        columns = [info.data.get(name) for name in ("id", "time", "value")]
        named = [name for name in (*columns, label) if name is not None]
        if len({*named}) < len(named):
            raise ValueError("id, time, value and label must be four different columns")
        return label

    @field_validator("bounds")
    @classmethod
    def _check_bounds(cls, bounds: tuple[float, float]) -> tuple[float, float]:
        if not bounds[0] < bounds[1]:
            raise PydanticCustomError("order", "the first must be below the second")
        return bounds

    @property
    def points(self) -> NDArray[np.float64]:
        """Return the grid (T,)."""
        return np.linspace(self.grid.start, self.grid.stop, self.grid.points)
