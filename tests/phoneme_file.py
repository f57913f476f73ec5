"""Small fake phoneme files: the published layout, invented values and speakers."""

import gzip
import hashlib
from pathlib import Path

import numpy as np

CLASSES = ("aa", "ao", "dcl", "iy", "sh")
HEADER = ",".join(["row.names", *(f"x.{i}" for i in range(1, 257)), "g", "speaker"])


def text(n: int = 20, seed: int = 1) -> str:
    """Return a file of ``n`` rows; classes take turns, four speakers of five rows."""
    values = np.random.default_rng(seed).normal(10, 3, size=(n, 256)).round(5)
    rows = [HEADER]
    for i, curve in enumerate(values):
        numbers = ",".join(f"{value:.5f}" for value in curve)
        rows.append(f"{i + 1},{numbers},{CLASSES[i % 5]},train.dr1.s{i // 5}.sa1")
    return "\n".join(rows) + "\n"


TEXT = text()


def sha256(content: bytes | str) -> str:
    """Return the digest of a file's content."""
    return hashlib.sha256(_encoded(content)).hexdigest()


def packed(content: str = TEXT) -> bytes:
    """Return the content as gzip writes it, without a date."""
    return gzip.compress(content.encode(), mtime=0)


def bad_crc() -> bytes:
    """Return a gzip file whose checksum is wrong."""
    content = bytearray(packed())
    content[-8] ^= 1
    return bytes(content)


def extra_row() -> str:
    """Return the file with its last row twice."""
    return TEXT + TEXT.split("\n")[-2] + "\n"


def put(root: Path, content: bytes | str, name: str = "phoneme.data") -> Path:
    """Write a file into data/raw of the project."""
    path = root / "data" / "raw" / name
    path.write_bytes(_encoded(content))
    return path


def _encoded(content: bytes | str) -> bytes:
    return content if isinstance(content, bytes) else content.encode()


def replace_cell(content: str, line: int, column: int, value: str) -> str:
    """Return ``content`` with one cell changed; lines count from 1 (the header)."""
    lines = content.split("\n")
    cells = lines[line - 1].split(",")
    cells[column] = value
    lines[line - 1] = ",".join(cells)
    return "\n".join(lines)


def write_sources(
    root: Path, content: str, *, rows: int = 20, url: str = "http://127.0.0.1:9/x"
) -> None:
    """Give the project at ``root`` a sources.toml whose only edition is ``content``."""
    counts = ", ".join(f"{label} = {rows // 5}" for label in CLASSES)
    (root / "data").mkdir(parents=True, exist_ok=True)
    (root / "data" / "sources.toml").write_text(
        f"""
        [phonemes]
        title = "Fake phonemes"
        file = "phoneme.data"
        url = "{url}"
        licence = "none"
        citation = "none"
        rows = {rows}
        counts = {{ {counts} }}
        [[phonemes.variants]]
        sha256 = "{sha256(content)}"
        origin = "invented"
        """
    )
