"""Views of a finished run: one cell as functions of its system see it."""

from __future__ import annotations

from typing import Any, Protocol

from curvote.chain.axis import Cell, PipelineSettings, Value
from curvote.chain.stage import Columns, Metadata, Place


class View(Protocol):
    """Artifacts that serve one cell of a run, with the settings of the cell."""

    @property
    def cell(self) -> Cell:
        """The cell."""
        ...

    @property
    def settings(self) -> PipelineSettings:
        """The resolved settings of the cell's system."""
        ...

    def without(self, *axes: str) -> View:
        """Return the view of the wider cell that has no value on some axes."""
        ...

    def at(self, **values: Value) -> View:
        """Return the view of the narrower cell with these values on its axes."""
        ...

    def setting(self, path: str) -> Any:
        """Return the value of a dotted key as the stages of the cell read it."""
        ...

    def holds(self, stage: str, table: str = "") -> bool:
        """Say whether the cell has the stage, and the stage that table."""
        ...

    def metadata(self, stage: str) -> Metadata:
        """Return the metadata that a stage recorded."""
        ...

    def columns(self, stage: str, table: str, place: Place = (0,)) -> Columns:
        """Return the columns of one repetition of a table."""
        ...

    def count(self, stage: str) -> int:
        """Return how many rows the tables of a stage have in all."""
        ...

    def read(self, stage: str, table: str) -> Any:
        """Return all rows of a table, with its index, as a pandas DataFrame."""
        ...
