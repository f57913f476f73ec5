"""The shards of one repetition, put together: one after the other, or by buckets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Here, Rows, Scattered

Made = Rows | Scattered


def with_shared(module: Any, here: Here) -> Here:
    """Return the repetition with the arrays that its module's shards share."""
    return replace(here, shared=module.shared(here)) if _shares(module) else here


def _shares(module: Any) -> bool:
    return hasattr(module, "shared")


def by_bucket(made: Scattered) -> Iterator[Rows]:
    """Yield the rows of each bucket; those of one stay in the order that they had."""
    order = np.argsort(made.buckets, kind="stable")
    sizes = np.bincount(made.buckets, minlength=made.count)
    for part in np.split(order, np.cumsum(sizes)[:-1]):
        yield taken(made.rows, part)


def taken(rows: Rows, part: NDArray[np.int64]) -> Rows:
    """Return some rows of each table, in the order of their numbers in ``part``."""
    return {
        table: {name: values[part] for name, values in columns.items()}
        for table, columns in rows.items()
    }


def stacked(parts: Sequence[Rows]) -> Rows:
    """Return the rows of tables one after the other."""
    return {
        table: {n: np.concatenate([p[table][n] for p in parts]) for n in columns}
        for table, columns in parts[0].items()
    }


def made_of(module: Any, here: Here) -> Iterator[Rows]:
    """Yield what a stage's module makes of one repetition, whole or in portions."""
    if hasattr(module, "portions"):
        yield from module.portions(here)
    else:
        yield whole(module, here) if hasattr(module, "shard") else module.one(here)


def whole(module: Any, here: Here) -> Rows:
    """Return all of a repetition's tables, made shard after shard in memory."""
    here = with_shared(module, here)
    count = module.shards(here.inputs, here.params, here.facts, here.place)
    made = [module.shard(here, number) for number in range(count)]
    if not isinstance(made[0], Scattered):
        return stacked(made)
    arrived = zip(*(by_bucket(each) for each in made), strict=True)
    return stacked(
        [
            module.joined(here, bucket, stacked(parts))
            for bucket, parts in enumerate(arrived)
        ]
    )
