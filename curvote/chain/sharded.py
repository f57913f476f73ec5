"""Shards of one repetition, put together in order or by buckets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Rows, Scattered, StageContext

ShardRows = Rows | Scattered


def with_shared(module: Any, context: StageContext) -> StageContext:
    """Return the context with the arrays that all shards of a module share."""
    return (
        replace(context, shared=module.shared(context))
        if _has_shared_arrays(module)
        else context
    )


def _has_shared_arrays(module: Any) -> bool:
    return hasattr(module, "shared")


def split_buckets(scattered: Scattered) -> Iterator[Rows]:
    """Yield the rows of each bucket, in the order that they had."""
    order = np.argsort(scattered.buckets, kind="stable")
    sizes = np.bincount(scattered.buckets, minlength=scattered.count)
    for part in np.split(order, np.cumsum(sizes)[:-1]):
        yield select_rows(scattered.rows, part)


def select_rows(rows: Rows, numbers: NDArray[np.int64]) -> Rows:
    """Return the rows of each table that have these numbers, in their order."""
    return {
        table: {name: values[numbers] for name, values in columns.items()}
        for table, columns in rows.items()
    }


def stack_rows(parts: Sequence[Rows]) -> Rows:
    """Return the rows of several parts, one part after the other."""
    return {
        table: {n: np.concatenate([p[table][n] for p in parts]) for n in columns}
        for table, columns in parts[0].items()
    }


def make_rows(module: Any, context: StageContext) -> Iterator[Rows]:
    """Yield the tables of one repetition of a stage, whole or in portions."""
    if hasattr(module, "portions"):
        yield from module.portions(context)
    else:
        yield (
            make_all_shards(module, context)
            if hasattr(module, "shard")
            else module.one(context)
        )


def make_all_shards(module: Any, context: StageContext) -> Rows:
    """Return a repetition's tables, made shard after shard in memory."""
    context = with_shared(module, context)
    count = module.shards(
        context.inputs, context.params, context.metadata, context.place
    )
    shards = [module.shard(context, number) for number in range(count)]
    if not isinstance(shards[0], Scattered):
        return stack_rows(shards)
    arrived = zip(*(split_buckets(scattered) for scattered in shards), strict=True)
    return stack_rows(
        [
            module.joined(context, bucket, stack_rows(parts))
            for bucket, parts in enumerate(arrived)
        ]
    )
