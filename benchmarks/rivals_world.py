"""Patients of four hospitals, and who of the target is tested: for transfer_rivals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from curvote.data import raw_files
from curvote.data.public import heart

Array = NDArray[np.float64]
Table = tuple[Array, Array]  # numbers (..., n, p), labels (..., n)

TARGET, TESTED = "hungarian", 150


@dataclass(frozen=True, eq=False)
class Splits:
    """Hospitals' tables, and which patients of the target are tested, (R, n)."""

    tables: dict[str, Table]
    tested: NDArray[np.int64]
    kept: NDArray[np.int64]

    @classmethod
    def drawn(cls, tables: dict[str, Table], number: int) -> Splits:
        n = len(tables[TARGET][1])
        rngs = map(np.random.default_rng, range(number))
        orders = np.array([rng.permutation(n) for rng in rngs])
        return cls(tables, orders[:, :TESTED], orders[:, TESTED:])

    @property
    def sizes(self) -> dict[str, int]:
        return {name: self.train(name)[1].shape[-1] for name in self.tables}

    @property
    def shape(self) -> tuple[int, int]:
        """Return how many splits there are, and how many numbers of a patient."""
        return len(self.kept), self.tables[TARGET][0].shape[1]

    @property
    def test(self) -> Table:
        X, y = self.tables[TARGET]
        return X[self.tested], y[self.tested]

    def train(self, name: str) -> Table:
        """Return what a hospital trains on, the target with an axis for splits."""
        X, y = self.tables[name]
        return (X[self.kept], y[self.kept]) if name == TARGET else (X, y)

    def each(self) -> Iterator[tuple[dict[str, Table], Table]]:
        """Yield tables to train on, and the tested one, of each split."""
        for tested, kept in zip(self.tested, self.kept, strict=True):
            X, y = self.tables[TARGET]
            yield self.tables | {TARGET: (X[kept], y[kept])}, (X[tested], y[tested])

    def right(self, w: Array) -> Array:
        """Return the accuracy of a linear rule (R, p) of each split."""
        X, y = self.test
        return np.asarray((((X @ w[..., None])[..., 0] > 0) == (y > 0)).mean(axis=-1))


def hospitals() -> dict[str, Table]:
    """Return features (n, 7) and labels in -1/+1 of each hospital."""
    parameters, root = heart.Parameters(duplicates="keep"), Path(__file__).parents[1]
    files = {name: raw_files.locate(root, name) for name in heart.files(parameters)}
    paths = {name: file.path for name, file in files.items() if file}
    columns = heart.clients(parameters, paths)
    labels = np.where(columns["label"] == 1, 1.0, -1.0)
    return {
        name: (columns["curve"][own], labels[own])
        for code, name in enumerate(heart.servers(parameters))
        for own in (columns["group"] == code,)
    }
