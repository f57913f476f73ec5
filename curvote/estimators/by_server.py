"""Transfer between servers as a scikit-learn class, from one release of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.privacy import Budget
from curvote.transfer.releasing import Release, release
from curvote.transfer.task import Task

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

ALONE = "server"


@dataclass(frozen=True)
class ServerRows:
    """Rows X (n, d) with the places of their classes, and the server of each."""

    X: Array
    codes: Codes
    server: list[str]

    @property
    def sizes(self) -> dict[str, int]:
        """Return the number of rows of each server, in sorted order."""
        names, counts = np.unique(self.server, return_counts=True)
        return dict(zip(names.tolist(), counts.tolist(), strict=True))

    def noised(self, task: Task) -> Codes:
        """Return for each row 1 or 0: whether its server releases it with noise."""
        flags = [task.servers[name].noised for name in self.server]
        return np.array(flags, dtype=np.int64)

    def budgets(self, task: Task) -> dict[str, Budget]:
        """Return the budget of each server that adds noise; UserError: no promise."""
        budgets = {}
        for name, n in self.sizes.items():
            try:
                if task.servers[name].noised:
                    budgets[name] = task.servers[name].budget(n)
            except UserError as error:
                raise UserError(f"server {name}: {error}") from None
        return budgets

    def draw_releases(
        self, task: Task, entropy: Callable[[], Entropy]
    ) -> list[Release]:
        """Return the release of each server."""
        named, labels = np.array(self.server), np.array(task.classes)[self.codes]
        return [
            release(task, name, self.X[named == name], labels[named == name], entropy())
            for name in task.servers
        ]


def server_names(server: ArrayLike | None, n: int) -> list[str]:
    """Return the name of each row's server as text."""
    if server is None:
        return [ALONE] * n
    names = np.asarray(server, dtype=object)
    if names.shape != (n,):
        raise UserError(f"server has shape {names.shape}; X has {n} rows: ({n},).")
    if pd.isna(names).any():
        row = int(np.flatnonzero(pd.isna(names))[0])
        raise UserError(f"server: row {row} has none.")
    return [str(name) for name in names]


def server_value(values: Any, server: str, parameter: str) -> Any:
    """Return the value that is stated for a server; none is a UserError."""
    if not isinstance(values, Mapping):
        return values
    by_name = {str(name): value for name, value in values.items()}
    if server not in by_name:
        raise UserError(
            f"{parameter} is stated for {', '.join(by_name) or 'no server'}; server"
            f" {server} has none."
        )
    return by_name[server]
