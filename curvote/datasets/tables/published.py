"""A published table as a data set: what it offers, from schema, limits and title."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from numpy.typing import NDArray

from curvote.datasets import sources
from curvote.datasets.tables import tabular
from curvote.datasets.tables.tabular import Prepared, TableParameters, TableSchema
from curvote.datasets.unpack import read

if TYPE_CHECKING:
    import pandas as pd

    from curvote.datasets.sources import Source

P = TypeVar("P", bound=TableParameters)
Paths = Mapping[str, Path]
Told = tuple[str, Sequence[str]]
Coded = tuple["pd.DataFrame", TableSchema]


class PublishedTable(Generic[P]):
    """A table whose file is published; a subclass says what is special about it."""

    file: str
    title: str
    schema: TableSchema
    allowed: tabular.Limits
    notes: Sequence[str] = ()

    def files(self, parameters: P) -> tuple[str, ...]:
        """Return the names of the raw files in data/sources.toml."""
        return (self.file,)

    def size(self, parameters: P) -> int | None:
        """Return how many clients there are by the published counts, None if unknown.

        Nothing is loaded.
        """
        return sources.find(self.file).rows

    def width(self, parameters: P) -> int:
        """Return how many features a client has by the public schema."""
        return len(self.schema.features)

    def facts(self, parameters: P, paths: Paths) -> dict[str, Any]:
        """Return what is public about the clients, as plain JSON values."""
        schema, prepared = self.prepared(parameters, paths)
        title, notes = self.told(parameters, prepared)
        return tabular.facts(schema, prepared, title, notes, parameters)

    def clients(self, parameters: P, paths: Paths) -> dict[str, NDArray[Any]]:
        """Return client_id, label, group (n,) and curve (n, p)."""
        return self.prepared(parameters, paths)[1].columns()

    def check(self, data: bytes, source: Source) -> None:
        """Raise a UserError unless schema, rows and class counts are as published."""
        schema = self.layout(source.name)
        frame = self.parse(data, schema)
        self.checked(frame, schema)
        tabular.check_counts(frame[schema.label], source)

    def told(self, parameters: P, prepared: Prepared) -> Told:
        """Return the title, and what a report must state beside the policies."""
        return self.title, self.notes

    def layout(self, file: str) -> TableSchema:
        """Return the schema of a raw file."""
        return self.schema

    def parse(self, data: bytes, schema: TableSchema) -> pd.DataFrame:
        """Return the text cells of a raw file."""
        return tabular.parse(data, schema)

    def checked(self, frame: pd.DataFrame, schema: TableSchema) -> pd.DataFrame:
        """Return text cells as numbers, indexed by client_id."""
        return tabular.checked(frame, schema, self.allowed)

    def load(self, file: str, path: Path) -> pd.DataFrame:
        """Return the checked table of the raw file at ``path``."""
        schema = self.layout(file)
        return self.checked(self.parse(read(path), schema), schema)

    def table(self, parameters: P, paths: Paths) -> Coded:
        """Return the checked table, and the schema of its features."""
        (file,) = self.files(parameters)
        return self.load(file, paths[file]), self.schema

    def prepared(self, parameters: P, paths: Paths) -> tuple[TableSchema, Prepared]:
        """Return the schema and the clients."""
        frame, schema = self.table(parameters, paths)
        policies = parameters.duplicates, parameters.missing
        return schema, tabular.prepare(frame, schema, *policies)
