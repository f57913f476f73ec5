"""Command `curvote advise`: what to expect of a task, before anybody reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curvote.chain.columns import align_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from curvote.theory import Outlook
    from curvote.theory.outlook import Expected, OutlookRow


HEAD = (
    "Error to expect of direct in %, ± its spread from run to run; in brackets, where",
    "nine runs of ten end if records are shifted, skewed, heavy-tailed or correlated:",
)


def format_interval(reach: tuple[float, float]) -> str:
    """Write an interval in percent."""
    low, high = (f"{100 * end:.0f}" for end in reach)
    return f"({low}-{high})"


def format_percent(value: float) -> str:
    """Write a share in percent points."""
    return f"{100 * value:.1f}"


def volunteer_lines(outlook: Outlook) -> Iterator[str]:
    """Yield lines on what labelled volunteers buy: alone, and with the reports."""
    bought = outlook.volunteers
    if bought is None:
        return
    yield ""
    yield f"{bought.count} volunteers who make their records and labels public for good"
    yield f"are worth reports of N epsilon^2 = {bought.worth:,.0f}. Error in %:"
    yield ""
    yield from align_columns(
        [
            ["epsilon", "", "N epsilon^2", "better alone", *outlook.signals],
            [
                "",
                "volunteers alone",
                f"{bought.worth:,.0f}",
                "",
                *_error_cells(bought.alone),
            ],
            *(
                [
                    f"{row.epsilon:g}",
                    "joined",
                    f"{bought.worth + row.reports:,.0f}",
                    bought.better(row),
                    *_error_cells(row.joined),
                ]
                for row in bought.rows
            ),
        ]
    )


def _error_cells(expected: Expected) -> list[str]:
    return [
        f"{format_percent(e.error)} ± {format_percent(e.spread)}"
        for e in expected.values()
    ]


def outsider_lines(rows: list[OutlookRow]) -> list[str]:
    """Return lines on what is left of epsilon for who trusts the shuffler."""
    from curvote.protocols.outside import OUTSIDER

    shuffled = [row for row in rows if row.outside]
    lines = [
        f"epsilon {row.epsilon:g}: {row.outside}, one of {row.outside.crowd:,}"
        for row in shuffled
        if row.outside
    ]
    return ["", f"For {OUTSIDER}:", *lines] if lines else []


def liar_lines(outlook: Outlook) -> Iterator[str]:
    """Yield lines that compare `votes` with `direct` under liars."""
    if not outlook.liars:
        return
    share = f"With {100 * outlook.liars:g} % of liars"
    yield from (
        "",
        f"{share}, the worse of two lies, error in %, honest -> lied to:",
        "",
    )
    table = [["epsilon", "", *outlook.signals]]
    for row in outlook.rows:
        table += _compare_rows(row)
    yield from align_columns(table)
    yield from ("", f"{share} no protocol in which each client sends one message can")
    yield "find a signal whose best rule (classes being equal) errs on"
    for row in outlook.rows:
        if row.lied:
            yield (
                f"epsilon {row.epsilon:g}: {format_percent(row.lied.hidden)} % or more"
            )


def _compare_rows(row: OutlookRow) -> Iterator[list[str]]:
    if row.lied is None:
        return
    arm = next(iter(row.lied.direct.values())).arm
    yield [
        f"{row.epsilon:g}",
        "votes",
        *_error_pairs(row.lied.votes, row.lied.votes_lied),
    ]
    yield ["", f"direct {arm}", *_error_pairs(row.lied.direct, row.lied.direct_lied)]
    lost = (
        100 * (row.lied.votes[name].error - row.lied.direct[name].error)
        for name in row.lied.votes
    )
    yield ["", "votes cost, honest", *(f"{points:+.1f}" for points in lost)]


def _error_pairs(honest: Expected, lied: Expected) -> list[str]:
    return [
        f"{format_percent(honest[name].error)} -> {format_percent(lied[name].error)}"
        for name in honest
    ]
