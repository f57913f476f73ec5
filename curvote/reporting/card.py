"""The data card: what a published data set holds, and how it meets its public bounds.

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

from curvote.classes import Classes
from curvote.datasets import lookup, sources
from curvote.datasets.frames import count
from curvote.datasets.raw import RawFile
from curvote.datasets.sources import Source
from curvote.errors import UserError

Columns = Mapping[str, NDArray[Any]]
Json = dict[str, Any]


@dataclass(frozen=True)
class Bounds:
    """Public bounds, why they are those, and the share of values outside them.

    ``clipped`` lies in [0, 1]: the share of values that clients will clip, once missing
    ones are settled by the data set's policy.
    """

    lower: float
    upper: float
    why: str
    clipped: float


@dataclass(frozen=True)
class FeatureCard:
    """One number of a record: its public bounds, and how many values are missing."""

    name: str
    unit: str
    bounds: Bounds
    missing: int


@dataclass(frozen=True)
class FileCard:
    """A raw file: who publishes it on which terms, and which edition is here."""

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
    """What is known about a published data set, ``clients`` records of ``points``.

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
    bounds: Bounds | None
    duplicates: Mapping[str, Any] | None
    missing: Mapping[str, Any] | None
    files: tuple[FileCard, ...]
    notes: tuple[str, ...]

    @property
    def points(self) -> int:
        """Return how many numbers one record has."""
        return len(self.grid)

    def to_json(self) -> Json:
        """Return the card as plain JSON values, the grid by its number of points."""
        plain = asdict(self)
        del plain["grid"]
        return plain | {"points": self.points}


def card(
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
    module = published(name, root)
    known = sources.catalogue(root)
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
        servers=_servers(facts, columns),
        features=_features(facts, columns["curve"]),
        bounds=_bounds(facts.get("bounds"), columns["curve"]),
        duplicates=facts.get("duplicates"),
        missing=facts.get("missing"),
        files=tuple(
            _file(known[each], (files or {}).get(each))
            for each in module.files(parameters)
        ),
        notes=tuple(facts["notes"]),
    )


def published(name: str, root: Path | None = None) -> ModuleType:
    """Return the module of a data set; UserError unless it has published files."""
    module = lookup.module(name)
    if all(source.dataset != name for source in sources.catalogue(root).values()):
        raise UserError(
            f"{name} has no published file, so there is no card: its records are"
            " generated, or belong to clients."
        )
    return module


def _servers(facts: Json, columns: Columns) -> tuple[ServerCard, ...]:
    classes, found = facts["classes"], []
    for place, name in enumerate(facts.get("servers") or ()):
        own = columns["label"][columns["group"] == place]
        counts = dict(zip(classes, count(own, classes), strict=True))
        found.append(ServerCard(name, len(own), counts))
    return tuple(found)


def _features(facts: Json, values: NDArray[np.float64]) -> tuple[FeatureCard, ...]:
    counts = (facts.get("missing") or {}).get("counts", {})
    return tuple(
        FeatureCard(
            name=feature["name"],
            unit=feature["unit"],
            bounds=_within(feature, values[:, j]),
            missing=counts.get(feature["name"], 0),
        )
        for j, feature in enumerate(facts.get("features") or ())
    )


def _bounds(stated: Json | None, values: NDArray[np.float64]) -> Bounds | None:
    return _within(stated, values) if stated else None


def _within(stated: Json, values: NDArray[np.float64]) -> Bounds:
    lower, upper = float(stated["lower"]), float(stated["upper"])
    outside = (values < lower) | (values > upper)
    clipped = float(outside.mean()) if outside.size else 0.0
    return Bounds(lower, upper, stated["why"], clipped)


def _file(source: Source, found: RawFile | None) -> FileCard:
    return FileCard(
        source=source.name,
        title=source.title,
        file=source.file,
        url=source.url,
        licence=source.licence,
        citation=source.citation,
        sha256=found.sha256 if found else None,
        origin=found.origin if found else None,
    )
