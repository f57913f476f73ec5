"""Published tables as data sets, by schema, limits and title."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from numpy.typing import NDArray

from curvote.datasets import sources
from curvote.datasets.tables import tabular
from curvote.datasets.tables.tabular import PreparedTable, TableParameters, TableSchema
from curvote.datasets.unpack import read

if TYPE_CHECKING:
    import pandas as pd

    from curvote.datasets.sources import Source

P = TypeVar("P", bound=TableParameters)
Paths = Mapping[str, Path]
TitleAndNotes = tuple[str, Sequence[str]]
Coded = tuple["pd.DataFrame", TableSchema]


class PublishedTable(Generic[P]):
    """A published table as a data set; a subclass states what is special."""

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
        """Return the public metadata of the clients."""
        schema, prepared = self.load_clients(parameters, paths)
        title, notes = self.title_and_notes(parameters, prepared)
        return tabular.facts(schema, prepared, title, notes, parameters)

    def clients(self, parameters: P, paths: Paths) -> dict[str, NDArray[Any]]:
        """Return client_id, label, group (n,) and curve (n, p)."""
        return self.load_clients(parameters, paths)[1].columns()

    def check(self, data: bytes, source: Source) -> None:
        """Raise a UserError unless schema, rows and class counts are as published."""
        schema = self.layout(source.name)
        frame = self.parse(data, schema)
        self.check_frame(frame, schema)
        tabular.check_counts(frame[schema.label], source)

    def title_and_notes(self, parameters: P, prepared: PreparedTable) -> TitleAndNotes:
        """Return the title, and the notes of a report beside the policies."""
        return self.title, self.notes

    def layout(self, file: str) -> TableSchema:
        """Return the schema of a raw file."""
        return self.schema

    def parse(self, data: bytes, schema: TableSchema) -> pd.DataFrame:
        """Return the text cells of a raw file."""
        return tabular.parse_table(data, schema)

    def check_frame(self, frame: pd.DataFrame, schema: TableSchema) -> pd.DataFrame:
        """Return text cells as numbers, indexed by client_id."""
        return tabular.check_table(frame, schema, self.allowed)

    def load(self, file: str, path: Path) -> pd.DataFrame:
        """Return the checked table of the raw file at ``path``."""
        schema = self.layout(file)
        return self.check_frame(self.parse(read(path), schema), schema)

    def load_features(self, parameters: P, paths: Paths) -> Coded:
        """Return the checked table, and the schema of its features."""
        (file,) = self.files(parameters)
        return self.load(file, paths[file]), self.schema

    def load_clients(
        self, parameters: P, paths: Paths
    ) -> tuple[TableSchema, PreparedTable]:
        """Return the schema and the clients."""
        frame, schema = self.load_features(parameters, paths)
        policies = parameters.duplicates, parameters.missing
        return schema, tabular.prepare_clients(frame, schema, *policies)
