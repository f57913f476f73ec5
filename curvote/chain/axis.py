"""What makes cells and repetitions: named lists of values from the configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Value = float | int | str
# A pipeline's resolved settings: a pydantic model, whose class depends on its systems.
Settings = Any


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
    values: Callable[[Settings], Sequence[Value]]
    read: Callable[[Settings, Value | None], Any] = lambda _, value: value
    key: str = ""
    successive: bool = False
    label: str = ""


@dataclass(frozen=True)
class Index:
    """What a table is repeated over inside one artifact, and how often."""

    name: str
    size: Callable[[Settings], int]


REPLICATE: Final = Index("replicate", lambda settings: int(settings.replicates))
EPSILON: Final = Axis(
    "epsilon",
    lambda settings: settings.epsilon,
    key="epsilon",
    label="epsilon (smaller: more private)",
)


@dataclass(frozen=True)
class Cell:
    """An ordered tuple of (axis, value) pairs: one place in the grid of a pipeline.

    Beside the axes of its system a cell may name its ``protocol`` (what tables call the
    system) and its ``setting`` (the combination of `grid` that it belongs to).
    """

    pairs: tuple[tuple[str, Value], ...] = ()

    @classmethod
    def of(cls, values: Mapping[str, Value | None]) -> Cell:
        """Return the cell of a mapping; None says that it has no such coordinate."""
        first = {name: values.get(name) for name in ("protocol", "setting")}
        every = (first | {**values}).items()
        return cls(tuple((name, value) for name, value in every if value is not None))

    def __getitem__(self, axis: str) -> Any:
        """Return the value on an axis, None where the cell has none."""
        return dict(self.pairs).get(axis)

    def __str__(self) -> str:
        words = (
            str(value) if axis == "setting" else f"{axis}={_short(value)}"
            for axis, value in self.pairs
            if axis != "protocol"
        )
        return " ".join(words)

    @property
    def words(self) -> str:
        """The pairs as a sentence has them: "epsilon 1, learner cg"."""
        return ", ".join(f"{axis} {_short(value)}" for axis, value in self.pairs)

    def to_json(self) -> dict[str, Value]:
        """Return the pairs as a mapping."""
        return dict(self.pairs)

    def with_(self, **values: Value | None) -> Cell:
        """Return the cell with other values on some axes; None takes an axis out."""
        return Cell.of(self.to_json() | values)

    def serves(self, other: Cell) -> bool:
        """Say whether an artifact of this cell holds for ``other``, too."""
        return set(self.pairs) <= set(other.pairs)

    def narrowest(self, cells: Iterable[Cell]) -> Cell | None:
        """Return the one of ``cells`` that serves this and names most of its pairs."""
        serving = (cell for cell in cells if cell.serves(self))
        return max(serving, key=lambda cell: len(cell.pairs), default=None)


def _short(value: Value) -> str:
    """Return a value as short as it can be read back: no two look alike."""
    if isinstance(value, str):
        return value
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def combinations(axes: Sequence[Axis], settings: Settings) -> Iterator[dict[str, Any]]:
    """Yield {axis: value} for every combination, the last axis turning fastest."""
    if not axes:
        yield {}
        return
    *first, last = axes
    for outer in combinations(first, settings):
        for value in last.values(settings):
            yield {**outer, last.name: value}
