"""What leaves a client, in words; and the tables of a block (to go with `block`)."""

from __future__ import annotations

from dataclasses import dataclass

from curvote.chain.stage import Columns

Tables = dict[str, list[Columns]]


@dataclass(frozen=True)
class Release:
    """One message that leaves a client, and what it spends.

    ``epsilon`` is a number or words; ``study_only`` marks what is drawn for comparison
    and what no real deployment would ask for.
    """

    who: str
    what: str
    mechanism: str
    epsilon: float | str
    detail: str = ""
    study_only: bool = False
