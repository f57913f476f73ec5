"""Spans of rows: where in a table's file each repetition stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from curvote.chain.stage import CLIENT_BLOCK, Place

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


def shard_spans(spans: Sequence[Span], number: int) -> list[Span]:
    """Return the spans of shard ``number``: 65,536 rows of a repetition."""
    start, stop, at = number * SHARD, (number + 1) * SHARD, 0
    shard = []
    for span in spans:
        low, high = max(start, at), min(stop, at + span.rows)
        if low < high:
            shard.append(Span(span.group, span.first + low - at, high - low))
        at += span.rows
    return shard
