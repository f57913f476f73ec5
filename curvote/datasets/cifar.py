"""CIFAR archives: 32 x 32 colour images as bytes.

The binary version: a record is its labels, one byte each, then 1024 bytes of red, of
green and of blue, row by row. Nothing is unpacked to disk, and nothing in it is run.
Source: Krizhevsky (2009), Learning multiple layers of features from tiny images.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.datasets import sources
from curvote.datasets.images import Edition, Images, Part
from curvote.datasets.sources import Source
from curvote.datasets.tables import tabular
from curvote.datasets.unpack import read
from curvote.errors import UserError

SIDE = 32
PLANES = ("red", "green", "blue")
_BYTES = SIDE**2 * len(PLANES)
FIRST_TEST_ID = 50_000  # the publisher has so many training images
_SIXTHS = {"train": 5, "test": 1}  # of each class


@dataclass(frozen=True)
class Archive:
    """A CIFAR archive: its class ``names`` and the files of each part.

    ``listed`` is the file that names the classes, ``labels`` how many labels a record
    begins with, of which the last is the class.
    """

    source: str
    title: str
    names: tuple[str, ...]
    listed: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    labels: int

    def edition(self) -> Edition:
        """Return the collection of images that the archive is."""
        return Edition(
            title=self.title,
            class_names=self.names,
            side=SIDE,
            lower=0,
            upper=255,
            why="one byte a colour of a pixel",
            names=lambda *_: (self.source,),
            counts=self._class_counts,
            read=self._read_part,
            planes=PLANES,
        )

    def check(self, data: bytes, source: Source) -> None:
        """Raise a UserError unless names, rows and counts are those published."""
        files = _extract_files(data, (self.listed, *self.train, *self.test))
        listed_names = tuple(files[self.listed].decode("utf-8", "replace").split())
        if listed_names != self.names:
            raise UserError(
                f"{self.listed} names other classes: {', '.join(listed_names)}."
            )
        for part in _SIXTHS:
            names = self.train if part == "train" else self.test
            labels = np.concatenate(
                [self._parse_records(files[x], x)[1] for x in names]
            )
            tabular.check_counts(map(str, labels), _part_counts(source, part))

    def _class_counts(self, _parameters: Any, part: Part) -> Mapping[str, int]:
        return _part_counts(sources.find(self.source), part).counts

    def _read_part(self, _: Any, part: Part, paths: Mapping[str, Path]) -> Images:
        names = self.train if part == "train" else self.test
        files = _extract_files(read(paths[self.source]), names)
        pixels, labels = zip(
            *(self._parse_records(files[x], x) for x in names), strict=True
        )
        first = FIRST_TEST_ID if part == "test" else 0
        classes = np.concatenate(labels)
        ids = np.arange(first, first + len(classes))
        return Images(np.concatenate(pixels), classes, ids)

    def _parse_records(
        self, data: bytes, name: str
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return pixels (n, 3072) and classes (n,) of one file of the archive."""
        size = self.labels + _BYTES
        if not data or len(data) % size:
            raise UserError(f"{name} has {len(data)} bytes, not a multiple of {size}.")
        rows = np.frombuffer(data, dtype=np.uint8).reshape(-1, size)
        labels = rows[:, self.labels - 1].astype(np.int64)
        if labels.max() >= len(self.names):
            first = int(np.argmax(labels >= len(self.names)))
            raise UserError(f"{name}: label {first + 1} is {labels[first]}, no class.")
        return rows[:, self.labels :], labels


def _part_counts(source: Source, part: str) -> Source:
    """Return the published counts of one part: 5 of 6 images train."""
    share = _SIXTHS[part]
    counts = {label: n * share // 6 for label, n in source.counts.items()}
    return replace(source, rows=source.rows * share // 6, counts=counts)


def _extract_files(data: bytes, names: tuple[str, ...]) -> dict[str, bytes]:
    """Return the contents of the files ``names`` of a tar archive."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            members = {
                Path(member.name).name: member for member in archive if member.isfile()
            }
            missing = sorted({*names} - {*members})
            if missing:
                raise UserError(f"it has no file {', '.join(missing)}.")
            streams = {name: archive.extractfile(members[name]) for name in names}
            return {name: s.read() for name, s in streams.items() if s is not None}
    except (tarfile.TarError, EOFError) as error:
        raise UserError(f"it is no whole tar archive: {error}.") from error
