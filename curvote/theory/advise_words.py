"""What `curvote advise` says of volunteers, shufflers and liars, as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curvote.chain.columns import aligned

if TYPE_CHECKING:
    from collections.abc import Iterator

    from curvote.theory import Outlook
    from curvote.theory.outlook import Expected, Row


HEAD = (
    "Error to expect of direct in %, ± its spread from run to run; in brackets, where",
    "nine runs of ten end if records are shifted, skewed, heavy-tailed or correlated:",
)


def ends(reach: tuple[float, float]) -> str:
    """Write an interval in percent."""
    low, high = (f"{100 * end:.0f}" for end in reach)
    return f"({low}-{high})"


def percent(value: float) -> str:
    """Write a share in percent points."""
    return f"{100 * value:.1f}"


def volunteers(found: Outlook) -> Iterator[str]:
    """Say what labelled volunteers buy: alone, and joined with the reports."""
    bought = found.volunteers
    if bought is None:
        return
    yield ""
    yield f"{bought.count} volunteers who make their records and labels public for good"
    yield f"are worth reports of N epsilon^2 = {bought.worth:,.0f}. Error in %:"
    yield ""
    yield from aligned(
        [
            ["epsilon", "", "N epsilon^2", "better alone", *found.signals],
            ["", "volunteers alone", f"{bought.worth:,.0f}", "", *_told(bought.alone)],
            *(
                [
                    f"{row.epsilon:g}",
                    "joined",
                    f"{bought.worth + row.reports:,.0f}",
                    bought.better(row),
                    *_told(row.joined),
                ]
                for row in bought.rows
            ),
        ]
    )


def _told(expected: Expected) -> list[str]:
    return [f"{percent(e.error)} ± {percent(e.spread)}" for e in expected.values()]


def outside(rows: list[Row]) -> list[str]:
    """Say what is left of a client's epsilon for who trusts the shuffler."""
    from curvote.protocols.outside import WHO

    told = [row for row in rows if row.outside]
    lines = [
        f"epsilon {row.epsilon:g}: {row.outside}, one of {row.outside.crowd:,}"
        for row in told
        if row.outside
    ]
    return ["", f"For {WHO}:", *lines] if lines else []


def liars(found: Outlook) -> Iterator[str]:
    """Compare `votes` with `direct`, and say what nobody can do about liars."""
    if not found.liars:
        return
    share = f"With {100 * found.liars:g} % of liars"
    yield from (
        "",
        f"{share}, the worse of two lies, error in %, honest -> lied to:",
        "",
    )
    table = [["epsilon", "", *found.signals]]
    for row in found.rows:
        table += _compared(row)
    yield from aligned(table)
    yield from ("", f"{share} no protocol in which each client sends one message can")
    yield "find a signal whose best rule (classes being equal) errs on"
    for row in found.rows:
        if row.lied:
            yield f"epsilon {row.epsilon:g}: {percent(row.lied.hidden)} % or more"


def _compared(row: Row) -> Iterator[list[str]]:
    if row.lied is None:
        return
    arm = next(iter(row.lied.direct.values())).arm
    yield [f"{row.epsilon:g}", "votes", *_pairs(row.lied.votes, row.lied.votes_lied)]
    yield ["", f"direct {arm}", *_pairs(row.lied.direct, row.lied.direct_lied)]
    lost = (
        100 * (row.lied.votes[name].error - row.lied.direct[name].error)
        for name in row.lied.votes
    )
    yield ["", "votes cost, honest", *(f"{points:+.1f}" for points in lost)]


def _pairs(honest: Expected, lied: Expected) -> list[str]:
    return [
        f"{percent(honest[name].error)} -> {percent(lied[name].error)}"
        for name in honest
    ]
