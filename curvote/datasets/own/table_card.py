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
        more=_equal(found.rows - found.distinct, parameters),
    )


def _equal(n: int, parameters: Parameters) -> tuple[str, ...]:
    """Return what to think of rows that equal an earlier one."""
    equal = "1 row equals" if n == 1 else f"{n:,} rows equal"
    kept = parameters.duplicates == "keep"
    if parameters.id and kept:
        said = "their ids differ, so they are kept as other people"
    elif parameters.id:
        said = (
            "left out though their ids differ. If these are other people, as where"
            " columns are coarse, write duplicates: keep"
        )
    else:
        said = (
            "nothing says whether these are other people. Name a column that tells"
            " them apart, id: COLUMN, or write duplicates: keep; they are left out"
        )
    told = n and (parameters.id or not kept)
    return (f"{equal} an earlier one: {said}.",) if told else ()


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
