"""stand-in"""

from dataclasses import dataclass
from typing import Any

from curvote.transfer.setup import Setup


@dataclass(frozen=True)
class Choice:
    release: str
    params: dict[str, Any]
    weights: str
    reason: str


def choose(setup: Setup) -> Choice:
    return Choice("moments", {}, "aligned", "stand-in")
