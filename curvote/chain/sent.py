"""What leaves whom, in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sent:
    """One message that leaves a party, a client for one, and what it spends.

    ``epsilon`` is a number or words; ``study_only`` marks what is drawn for comparison
    and what no real deployment would ask for. A ``whole`` one is about all records of
    its party, who is trusted with them: central privacy, not local.
    """

    who: str
    what: str
    mechanism: str
    detail: str = ""
    epsilon: float | str = "epsilon"
    study_only: bool = False
    party: str = "client"
    whole: bool = False
