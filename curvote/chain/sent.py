"""Systems: one frozen value each, of which everything generic is made."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MessageDescription:
    """Description of a message that leaves a party, and of its budget.

    ``epsilon`` is a number or words; ``study_only`` marks what is drawn for comparison
    and what no real deployment would ask for. A ``per_table`` one is about all records
    of its party, who is trusted with them: central privacy, not local.
    """

    who: str
    what: str
    mechanism: str
    detail: str = ""
    epsilon: float | str = "epsilon"
    study_only: bool = False
    party: str = "client"
    per_table: bool = False
