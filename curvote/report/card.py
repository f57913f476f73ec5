"""Data card: the content of a published data set, and its public bounds.

A card counts individual values, and its figure shows their distribution by class. For
a data set that anybody may fetch this reveals nothing new; for records that belong to
clients it would be a leak. So a card exists only for data sets with a published file,
and a report may show a card's numbers for those alone, never a histogram of clients.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base.classes import Classes
from curvote.base.errors import UserError
from curvote.data import lookup, raw_files
from curvote.data.columns import class_counts
from curvote.data.raw_files import RawFile, Source

Columns = Mapping[str, NDArray[Any]]
Json = dict[str, Any]


@dataclass(frozen=True)
class PublicBounds:
    """Public bounds, their reason, and the share of values outside them.

    ``clipped`` lies in [0, 1]: the share of values that clients will clip, once missing
    ones are settled by the data set's policy.
    """

    lower: float
    upper: float
    why: str
    clipped: float


@dataclass(frozen=True)
class FeatureCard:
    """One feature of a record: its public bounds and missing values."""

    name: str
    unit: str
    bounds: PublicBounds
    missing: int


@dataclass(frozen=True)
class FileCard:
    """A raw file: publisher, terms, and the edition on this machine."""

    source: str
    title: str
    file: str
    url: str
    licence: str
    citation: str
    sha256: str | None
    origin: str | None


@dataclass(frozen=True)
class ServerCard:
    """One server: how many records it holds, and how many of each class."""

    name: str
    clients: int
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Card:
    """A published data set: ``clients`` records of ``points`` numbers each.

    ``rows`` are those of the file or of the chosen classes, as its facts state them;
    ``counts`` maps a class to its rows. ``servers`` is empty where one holds all,
    ``features`` for curves; ``bounds``
    are those of a curve's values, None where only coefficients are bounded.
    ``duplicates`` and ``missing`` are the facts' own, None where they state none.
    """

    name: str
    title: str
    rows: int
    clients: int
    counts: Mapping[str, int]
    unit: str
    domain: tuple[float, float]
    grid: tuple[float, ...]
    classes: Classes
    servers: tuple[ServerCard, ...]
    features: tuple[FeatureCard, ...]
    bounds: PublicBounds | None
    duplicates: Mapping[str, Any] | None
    missing: Mapping[str, Any] | None
    files: tuple[FileCard, ...]
    notes: tuple[str, ...]

    @property
    def points(self) -> int:
        """Return the length of one record."""
        return len(self.grid)

    def to_json(self) -> Json:
        """Return the card as plain JSON values, the grid by its number of points."""
        plain = asdict(self)
        del plain["grid"]
        return plain | {"points": self.points}


def make_card(
    name: str,
    parameters: Any,
    facts: Json,
    columns: Columns,
    *,
    files: Mapping[str, RawFile] | None = None,
    root: Path | None = None,
) -> Card:
    """Return the card of data set ``name`` from its facts and its client columns.

    ``files`` maps a name in data/sources.toml, of the project at ``root``, to the file
    that was read; without it the card does not say which edition is here.

    Raises:
        UserError: a data set without a published file; its records are private.
    """
    module = published_module(name, root)
    catalogue = raw_files.catalogue(root)
    return Card(
        name=name,
        title=facts["title"],
        rows=facts["rows"],
        clients=len(columns["label"]),
        counts=facts["counts"],
        unit=facts["unit"],
        domain=(facts["domain"][0], facts["domain"][1]),
        grid=tuple(facts["grid"]),
        classes=Classes(facts["classes"]),
        servers=_server_cards(facts, columns),
        features=_feature_cards(facts, columns["curve"]),
        bounds=_optional_bounds(facts.get("bounds"), columns["curve"]),
        duplicates=facts.get("duplicates"),
        missing=facts.get("missing"),
        files=tuple(
            _file_card(catalogue[file_name], (files or {}).get(file_name))
            for file_name in module.files(parameters)
        ),
        notes=tuple(facts["notes"]),
    )


def published_module(name: str, root: Path | None = None) -> ModuleType:
    """Return the module of a data set; UserError unless it has published files."""
    module = lookup.module(name)
    if all(source.dataset != name for source in raw_files.catalogue(root).values()):
        raise UserError(
            f"{name} has no published file, so there is no card: its records are"
            " generated, or belong to clients."
        )
    return module


def _server_cards(facts: Json, columns: Columns) -> tuple[ServerCard, ...]:
    classes, cards = facts["classes"], []
    for place, name in enumerate(facts.get("servers") or ()):
        labels = columns["label"][columns["group"] == place]
        counts = dict(zip(classes, class_counts(labels, classes), strict=True))
        cards.append(ServerCard(name, len(labels), counts))
    return tuple(cards)


def _feature_cards(facts: Json, values: NDArray[np.float64]) -> tuple[FeatureCard, ...]:
    counts = (facts.get("missing") or {}).get("counts", {})
    return tuple(
        FeatureCard(
            name=feature["name"],
            unit=feature["unit"],
            bounds=_bounds_card(feature, values[:, j]),
            missing=counts.get(feature["name"], 0),
        )
        for j, feature in enumerate(facts.get("features") or ())
    )


def _optional_bounds(
    bounds: Json | None, values: NDArray[np.float64]
) -> PublicBounds | None:
    return _bounds_card(bounds, values) if bounds else None


def _bounds_card(bounds: Json, values: NDArray[np.float64]) -> PublicBounds:
    lower, upper = float(bounds["lower"]), float(bounds["upper"])
    outside = (values < lower) | (values > upper)
    clipped = float(outside.mean()) if outside.size else 0.0
    return PublicBounds(lower, upper, bounds["why"], clipped)


def _file_card(source: Source, raw_file: RawFile | None) -> FileCard:
    return FileCard(
        source=source.name,
        title=source.title,
        file=source.file,
        url=source.url,
        licence=source.licence,
        citation=source.citation,
        sha256=raw_file.sha256 if raw_file else None,
        origin=raw_file.origin if raw_file else None,
    )
