"""What is known about each published file before it is read: data/sources.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curvote import validate
from curvote.errors import UserError

_HERE = Path(__file__).resolve()


@dataclass(frozen=True)
class Variant:
    """A known edition of a file: SHA-256 of its decompressed bytes, and whence."""

    sha256: str
    origin: str


@dataclass(frozen=True)
class Source:
    """One published file: where it is, which editions are known, what it holds."""

    name: str
    title: str
    file: str
    url: str
    licence: str
    citation: str
    rows: int
    counts: Mapping[str, int]
    variants: tuple[Variant, ...]

    def origin(self, sha256: str) -> str | None:
        """Return where the edition with this digest came from, None if not listed."""
        known = {variant.sha256: variant.origin for variant in self.variants}
        return known.get(sha256)


def catalogue(root: Path | None = None) -> dict[str, Source]:
    """Return all sources by name: of the project at ``root``, else curvote's own."""
    path = _file(root)
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        return {name: _source(name, table) for name, table in tables.items()}
    except (tomllib.TOMLDecodeError, TypeError, KeyError) as error:
        raise UserError(f"{path}: {error}") from error


def find(name: str, root: Path | None = None) -> Source:
    """Return the source ``name``; an unknown name is a UserError."""
    known = catalogue(root)
    return known[validate.one_of(known, source=name)]


def _file(root: Path | None) -> Path:
    """Find sources.toml: the project's, the installed package's, the checkout's."""
    candidates = [
        _HERE.with_name("sources.toml"),
        _HERE.parents[2] / "data/sources.toml",
    ]
    if root is not None:
        candidates.insert(0, root / "data" / "sources.toml")
    for path in candidates:
        if path.is_file():
            return path
    raise UserError(f"no sources.toml; looked for {', '.join(map(str, candidates))}.")


def _source(name: str, table: dict[str, Any]) -> Source:
    variants = tuple(Variant(**variant) for variant in table.pop("variants"))
    return Source(name=name, variants=variants, **table)
