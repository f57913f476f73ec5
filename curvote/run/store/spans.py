"""Tables of an artifact: spans of rows, Parquet files, reading by repetition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from curvote.chain.stage import Place
from curvote.chain.streams import CLIENT_BLOCK

# Rows that are read together at most, and the most that a row group holds.
SHARD = CLIENT_BLOCK


class Span(NamedTuple):
    """A span of rows in one row group: ``rows`` of them from ``first`` on."""

    group: int
    first: int
    rows: int


Spans = dict[Place, list[Span]]


def read_spans(entry: Mapping[str, Any], sizes: Callable[[], Sequence[int]]) -> Spans:
    """Return the spans of each repetition, from a table's manifest entry.

    ``sizes`` returns the rows of each row group of the file. Before version 4 a row
    group held one repetition, in version 2 as a number: -1 is what all share.
    """
    if "groups" in entry:
        entries = zip(entry["places"], entry["groups"], entry["counts"], strict=True)
        return _collect_spans(entries)
    places = entry.get("places")
    if places is None:
        places = [() if number == -1 else (number,) for number in entry["replicates"]]
    return _collect_spans(
        (place, group, rows)
        for group, (place, rows) in enumerate(zip(places, sizes(), strict=True))
    )


def _collect_spans(entries: Iterable[tuple[Sequence[int], int, int]]) -> Spans:
    spans: Spans = {}
    first, last = 0, -1
    for place, group, rows in entries:
        first = first if group == last else 0
        spans.setdefault(tuple(place), []).append(Span(group, first, rows))
        first, last = first + rows, group
    return spans


def count_shards(spans: Sequence[Span]) -> int:
    """Return the number of shards: at least one, which may be empty."""
    rows = sum(span.rows for span in spans)
    return max(1, -(-rows // SHARD))


def shard_spans(spans: Sequence[Span], number: int) -> list[Span]:
    """Return the spans of shard ``number``: 65,536 rows of a repetition."""
    return list(_slice_spans(spans, number * SHARD, (number + 1) * SHARD))


def _slice_spans(spans: Sequence[Span], start: int, stop: int) -> Iterator[Span]:
    """Yield the spans of rows [start, stop) of several spans."""
    at = 0
    for span in spans:
        low, high = max(start, at), min(stop, at + span.rows)
        if low < high:
            yield Span(span.group, span.first + low - at, high - low)
        at += span.rows
