"""Raw files of published data sets: catalogue, download, checksum, decompression."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from curvote import validate
from curvote.errors import UserError

# curvote's own: what data/sources.toml of the repository says, brought along.
_OWN = Path(str(files("curvote.datasets") / "sources.toml"))
ACCEPTED = "accepted.toml"


@dataclass(frozen=True)
class Variant:
    """A known edition of a file: SHA-256 of its decompressed bytes, and origin."""

    sha256: str
    origin: str


@dataclass(frozen=True)
class Source:
    """One published file: where it is, which editions are known, what it holds.

    ``dataset`` is the module that checks it. With ``login`` the publisher hands it to
    registered users only; ``derived`` ones have no publisher to fetch them from. Where
    its file is not here, that of the source ``stand_in`` is taken, if there is one.
    """

    name: str
    title: str
    file: str
    url: str
    licence: str
    citation: str
    rows: int
    counts: Mapping[str, int]
    variants: tuple[Variant, ...]
    dataset: str
    login: bool = False
    derived: bool = False
    stand_in: str = ""

    def origin(self, sha256: str) -> str | None:
        """Return the origin of the edition with this digest, None if not listed."""
        origins = {variant.sha256: variant.origin for variant in self.variants}
        return origins.get(sha256)


def catalogue(root: Path | None = None) -> dict[str, Source]:
    """Return all sources by name: of the project at ``root``, else curvote's own."""
    path = _catalogue_file(root)
    accepted = _accepted_editions(root)
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        return {
            name: _parse_source(name, table, accepted.get(name, {}))
            for name, table in tables.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(f"{path} is no list of sources: {error}.") from error


def record_acceptance(root: Path, name: str, sha256: str) -> Path:
    """Record that the user accepts an edition; return the record's path."""
    path = root / "data" / ACCEPTED
    when = datetime.now(UTC).date().isoformat()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as stream:
        stream.write(f'[{name}]\n"{sha256}" = "accepted by the user on {when}"\n')
    return path


def _accepted_editions(root: Path | None) -> dict[str, dict[str, str]]:
    """Return the editions that a project's user accepted: {name: {sha: why}}."""
    path = root / "data" / ACCEPTED if root else None
    if path is None or not path.is_file():
        return {}
    # Appended to, so that a name may stand there twice: no single TOML document.
    accepted: dict[str, dict[str, str]] = {}
    blocks = path.read_text(encoding="utf-8").split("\n[")
    for block in blocks:
        text = block if block.startswith("[") else f"[{block}"
        for name, table in tomllib.loads(text).items():
            accepted.setdefault(name, {}).update(table)
    return accepted


def find(name: str, root: Path | None = None) -> Source:
    """Return the source ``name``; an unknown name is a UserError."""
    catalog = catalogue(root)
    return catalog[validate.one_of(catalog, source=name)]


def _catalogue_file(root: Path | None) -> Path:
    """Return the sources.toml of the project, where there is one, or curvote's own."""
    project_file = root / "data" / "sources.toml" if root else None
    return project_file if project_file and project_file.is_file() else _OWN


def _parse_source(
    name: str, table: dict[str, Any], accepted: Mapping[str, str]
) -> Source:
    variants = [Variant(**variant) for variant in table.pop("variants")]
    variants += [Variant(sha256, why) for sha256, why in accepted.items()]
    dataset = table.pop("dataset", name)
    return Source(name=name, dataset=dataset, variants=tuple(variants), **table)
