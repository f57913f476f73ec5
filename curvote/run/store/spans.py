"""Where the rows of a repetition stand in a table's file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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


def spans_of(entry: Mapping[str, Any], sizes: Callable[[], Sequence[int]]) -> Spans:
    """Return where each repetition stands, by what a manifest says of a table.

    ``sizes`` returns the rows of each row group of the file. Before version 4 a row
    group held one repetition, in version 2 as a number: -1 is what all share.
    """
    if "groups" in entry:
        known = zip(entry["places"], entry["groups"], entry["counts"], strict=True)
        return _read(known)
    places = entry.get("places")
    if places is None:
        places = [() if number == -1 else (number,) for number in entry["replicates"]]
    return _read(
        (place, group, rows)
        for group, (place, rows) in enumerate(zip(places, sizes(), strict=True))
    )


def _read(known: Iterable[tuple[Sequence[int], int, int]]) -> Spans:
    found: Spans = {}
    first, last = 0, -1
    for place, group, rows in known:
        first = first if group == last else 0
        found.setdefault(tuple(place), []).append(Span(group, first, rows))
        first, last = first + rows, group
    return found


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
