"""Card of a user's table."""

from __future__ import annotations

import math
from pathlib import Path

from curvote.datasets.own import table_scan
from curvote.datasets.own.examined import ColumnCard, FileCard
from curvote.datasets.own.spans import ColumnSpans
from curvote.datasets.own.table_parameters import Parameters


def table_card(parameters: Parameters, path: Path) -> FileCard:
    """Return the card of the table; UserError: violations of the file."""
    survey = table_scan.survey_table(parameters, path)
    counts = {name: survey.counts.get(name, 0) for name in survey.schema.classes}
    clients, missing = sum(counts.values()), survey.missing
    keeps_repeats = parameters.duplicates == "keep"
    fills = parameters.missing == "centre"
    client_count = survey.rows if keeps_repeats else survey.distinct
    return FileCard(
        path=path,
        rows=survey.rows,
        clients=clients,
        classes=counts,
        columns=column_cards([*missing], survey.spans, [*missing.values()]),
        repeats=survey.rows - survey.distinct,
        repeats_are="kept" if keeps_repeats else "left out",
        left_out={"a value is missing": client_count - clients},
        filled=sum(missing.values()) if fills else 0,
        more=_repeat_remark(survey.rows - survey.distinct, parameters),
    )


def _repeat_remark(n: int, parameters: Parameters) -> tuple[str, ...]:
    """Return a remark on rows that equal an earlier one."""
    equal = "1 row equals" if n == 1 else f"{n:,} rows equal"
    keeps_repeats = parameters.duplicates == "keep"
    if parameters.id and keeps_repeats:
        text = "their ids differ, so they are kept as other people"
    elif parameters.id:
        text = (
            "left out though their ids differ. If these are other people, as where"
            " columns are coarse, write duplicates: keep"
        )
    else:
        text = (
            "nothing says whether these are other people. Name a column that tells"
            " them apart, id: COLUMN, or write duplicates: keep; they are left out"
        )
    needs_remark = n and (parameters.id or not keeps_repeats)
    return (f"{equal} an earlier one: {text}.",) if needs_remark else ()


def column_cards(
    names: list[str], spans: ColumnSpans, missing: list[int] | None = None
) -> tuple[ColumnCard, ...]:
    """Return the cards of columns from their spans."""
    lacking = missing or [0] * len(names)
    return tuple(
        ColumnCard(
            name=name,
            lower=float(spans.lower[j]),
            upper=float(spans.upper[j]),
            values=int(spans.values[j]),
            missing=lacking[j],
            below=int(spans.below[j]),
            above=int(spans.above[j]),
            constant=bool(spans.constant[j]),
            used=_round_up_tenths(float(spans.used[j])),
        )
        for j, name in enumerate(names)
    )


def _round_up_tenths(share: float) -> float:
    """Return a share rounded up to tenths; ends of values stay coarse."""
    return math.ceil(10 * share) / 10
