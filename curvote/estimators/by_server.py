"""The rows of several servers in one matrix, and what is stated for each of them."""

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
class Tables:
    """Rows X (n, d) with the places of their classes, and the server of each."""

    X: Array
    codes: Codes
    server: list[str]

    @property
    def sizes(self) -> dict[str, int]:
        """How many rows each server has, in sorted order."""
        names, counts = np.unique(self.server, return_counts=True)
        return dict(zip(names.tolist(), counts.tolist(), strict=True))

    def noised(self, task: Task) -> Codes:
        """Say of each row, by 0 or 1, whether its server releases it with noise."""
        each = [task.servers[name].noised for name in self.server]
        return np.array(each, dtype=np.int64)

    def budgets(self, task: Task) -> dict[str, Budget]:
        """Return what each server that adds noise spends; UserError: no promise."""
        made = {}
        for name, n in self.sizes.items():
            try:
                if task.servers[name].noised:
                    made[name] = task.servers[name].budget(n)
            except UserError as error:
                raise UserError(f"server {name}: {error}") from None
        return made

    def released(self, task: Task, entropy: Callable[[], Entropy]) -> list[Release]:
        """Return what each server releases."""
        named, labels = np.array(self.server), np.array(task.classes)[self.codes]
        return [
            release(task, each, self.X[named == each], labels[named == each], entropy())
            for each in task.servers
        ]


def servers(server: ArrayLike | None, n: int) -> list[str]:
    """Return the name of each row's server as text."""
    if server is None:
        return [ALONE] * n
    given = np.asarray(server, dtype=object)
    if given.shape != (n,):
        raise UserError(f"server has shape {given.shape}; X has {n} rows: ({n},).")
    if pd.isna(given).any():
        row = int(np.flatnonzero(pd.isna(given))[0])
        raise UserError(f"server: row {row} has none.")
    return [str(name) for name in given]


def stated_for(given: Any, server: str, called: str) -> Any:
    """Return what is stated for a server; nothing is a UserError."""
    if not isinstance(given, Mapping):
        return given
    known = {str(name): value for name, value in given.items()}
    if server not in known:
        raise UserError(
            f"{called} is stated for {', '.join(known) or 'no server'}; server"
            f" {server} has none."
        )
    return known[server]
