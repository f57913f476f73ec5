"""Axes, cells and repetitions: named lists of values from the configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

Value = float | int | str
# A pipeline's resolved settings: a pydantic model, whose class depends on its systems.
PipelineSettings = Any


@dataclass(frozen=True)
class Axis:
    """A named list of values; a stage that names the axis is done for each of them.

    ``values`` takes them from the settings, ``read`` returns what a stage may read of
    one (None: the stage has not this axis) under the axis's name. ``key`` is the key of
    pipelines.yaml that states them. Where values are ``successive`` one comes after the
    other, and NAME@previous is what stage NAME made for the one before. ``label`` is
    what figures write along it.
    """

    name: str
    values: Callable[[PipelineSettings], Sequence[Value]]
    read: Callable[[PipelineSettings, Value | None], Any] = lambda _, value: value
    key: str = ""
    successive: bool = False
    label: str = ""


@dataclass(frozen=True)
class Index:
    """One dimension that tables of an artifact repeat over, and its size."""

    name: str
    size: Callable[[PipelineSettings], int]


REPLICATE: Final = Index("replicate", lambda settings: int(settings.replicates))
EPSILON: Final = Axis(
    "epsilon",
    lambda settings: settings.epsilon,
    key="epsilon",
    label="epsilon (smaller: more private)",
)


@dataclass(frozen=True)
class Cell:
    """Coordinates of one place in the grid of a pipeline: (axis, value) pairs.

    Beside the axes of its system a cell may name its ``protocol`` (what tables call the
    system) and its ``setting`` (the combination of `grid` that it belongs to).
    """

    pairs: tuple[tuple[str, Value], ...] = ()

    @classmethod
    def from_mapping(cls, values: Mapping[str, Value | None]) -> Cell:
        """Return the cell of a mapping; a value None stands for no coordinate."""
        leading = {name: values.get(name) for name in ("protocol", "setting")}
        coordinates = (leading | {**values}).items()
        return cls(
            tuple((name, value) for name, value in coordinates if value is not None)
        )

    def __getitem__(self, axis: str) -> Any:
        """Return the value on an axis, None where the cell has none."""
        return dict(self.pairs).get(axis)

    def __str__(self) -> str:
        parts = (
            str(value) if axis == "setting" else f"{axis}={_format_axis_value(value)}"
            for axis, value in self.pairs
            if axis != "protocol"
        )
        return " ".join(parts)

    @property
    def words(self) -> str:
        """The pairs in words: "epsilon 1, learner cg"."""
        return ", ".join(
            f"{axis} {_format_axis_value(value)}" for axis, value in self.pairs
        )

    def to_json(self) -> dict[str, Value]:
        """Return the pairs as a mapping."""
        return dict(self.pairs)

    def with_values(self, **values: Value | None) -> Cell:
        """Return the cell with other values on some axes; None removes an axis."""
        return Cell.from_mapping(self.to_json() | values)

    def serves(self, other: Cell) -> bool:
        """Say whether an artifact of this cell holds for ``other``, too."""
        return set(self.pairs) <= set(other.pairs)

    def most_specific(self, cells: Iterable[Cell]) -> Cell | None:
        """Return the cell among ``cells`` that covers this one most exactly."""
        serving = (cell for cell in cells if cell.serves(self))
        return max(serving, key=lambda cell: len(cell.pairs), default=None)


def _format_axis_value(value: Value) -> str:
    """Return a value as the shortest text that can be read back."""
    if isinstance(value, str):
        return value
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def axis_combinations(
    axes: Sequence[Axis], settings: PipelineSettings
) -> Iterator[dict[str, Any]]:
    """Yield {axis: value} for every combination, the last axis turning fastest."""
    choices = ([(axis.name, v) for v in axis.values(settings)] for axis in axes)
    yield from map(dict, product(*choices))
