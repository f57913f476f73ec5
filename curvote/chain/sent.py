"""What leaves whom, in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sent:
    """One message that leaves a client, and what it spends.

    ``epsilon`` is a number or words; ``study_only`` marks what is drawn for comparison
    and what no real deployment would ask for.
    """

    who: str
    what: str
    mechanism: str
    detail: str = ""
    epsilon: float | str = "epsilon"
    study_only: bool = False
