"""The card of a user's table."""

from __future__ import annotations

import math
from pathlib import Path

from curvote.datasets.own import table_scan
from curvote.datasets.own.examined import Column, Examined
from curvote.datasets.own.spans import Spans
from curvote.datasets.own.table_parameters import Parameters


def examined(parameters: Parameters, path: Path) -> Examined:
    """Return the card; UserError: all that is wrong with the file."""
    found = table_scan.survey(parameters, path)
    counts = {name: found.counts.get(name, 0) for name in found.schema.classes}
    clients, missing = sum(counts.values()), found.missing
    kept = parameters.duplicates == "keep"
    fills = parameters.missing == "centre"
    taken = found.rows if kept else found.distinct
    return Examined(
        path=path,
        rows=found.rows,
        clients=clients,
        classes=counts,
        columns=columns([*missing], found.spans, [*missing.values()]),
        repeats=found.rows - found.distinct,
        repeats_are="kept" if kept else "left out",
        left_out={"a value is missing": taken - clients},
        filled=sum(missing.values()) if fills else 0,
        more=() if kept or not parameters.id else _equal(found.rows - found.distinct),
    )


def _equal(n: int) -> tuple[str, ...]:
    """Return what to think of rows left out for an equal one of another id."""
    equal = "1 row equals" if n == 1 else f"{n:,} rows equal"
    said = (
        f"{equal} an earlier one, though their ids differ. If these are other people,"
        " as where columns are coarse, write duplicates: keep."
    )
    return (said,) if n else ()


def columns(
    names: list[str], spans: Spans, missing: list[int] | None = None
) -> tuple[Column, ...]:
    """Return what the spans of some columns say."""
    lacking = missing or [0] * len(names)
    return tuple(
        Column(
            name=name,
            lower=float(spans.lower[j]),
            upper=float(spans.upper[j]),
            values=int(spans.values[j]),
            missing=lacking[j],
            below=int(spans.below[j]),
            above=int(spans.above[j]),
            constant=bool(spans.constant[j]),
            used=_tenths(float(spans.used[j])),
        )
        for j, name in enumerate(names)
    )


def _tenths(share: float) -> float:
    """Round up: what a card says of the ends of values is coarse on purpose."""
    return math.ceil(10 * share) / 10
