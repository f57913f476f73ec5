"""What a check found, and the way out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from curvote.run.project import Project

Status = Literal["ok", "warning", "failed"]


@dataclass(frozen=True)
class Finding:
    """One line of the doctor: what was looked at, how it is, and what to do."""

    check: str
    status: Status
    found: str
    fix: str = ""


Check = Callable[[Project], Iterator[Finding]]


def short(lines: list[str], most: int = 3) -> str:
    """Return the first lines as one, and how many more there are."""
    more = f" (and {len(lines) - most} more)" if len(lines) > most else ""
    return "; ".join(lines[:most]) + more
