"""Where the rows of a repetition stand in a table's file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from curvote.chain.stage import Place
from curvote.chain.streams import CLIENT_BLOCK

# Rows that are read together at most, and the most that a row group holds.
SHARD = CLIENT_BLOCK


class Span(NamedTuple):
    """Rows of one row group: ``rows`` of them from ``first`` on."""

    group: int
    first: int
    rows: int


Spans = dict[Place, list[Span]]


def spans_of(entry: Mapping[str, Any], sizes: Sequence[int]) -> Spans:
    """Return where each repetition stands, by what a manifest says of a table.

    ``sizes`` are the rows of each row group of the file.
    """
    found: Spans = {}
    for group, place in enumerate(_places(entry)):
        found.setdefault(place, []).append(Span(group, 0, sizes[group]))
    return found


def _places(entry: Mapping[str, Any]) -> list[Place]:
    """Return whose rows each row group holds; () is shared."""
    if "places" in entry:
        return [tuple(place) for place in entry["places"]]
    return [() if r == -1 else (r,) for r in entry["replicates"]]  # of version 2


def shards(spans: Sequence[Span]) -> int:
    """Return how many shards there are: at least one, which may be empty."""
    rows = sum(span.rows for span in spans)
    return max(1, -(-rows // SHARD))


def shard(spans: Sequence[Span], number: int) -> list[Span]:
    """Return where one shard stands: the rows from 65,536 ``number`` on."""
    return list(_cut(spans, number * SHARD, (number + 1) * SHARD))


def _cut(spans: Sequence[Span], start: int, stop: int) -> Iterator[Span]:
    """Yield what stands in rows [start, stop) of all the spans together."""
    at = 0
    for span in spans:
        low, high = max(start, at), min(stop, at + span.rows)
        if low < high:
            yield Span(span.group, span.first + low - at, high - low)
        at += span.rows
