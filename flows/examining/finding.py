"""Findings of `curvote doctor`, and checks of the databases that a run needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from curvote.run.project import Project

Status = Literal["ok", "warning", "failed"]


@dataclass(frozen=True)
class Finding:
    """A finding of the doctor: what was checked, its state, and a remedy."""

    check: str
    status: Status
    found: str
    fix: str = ""


Check = Callable[[Project], Iterator[Finding]]


def shorten_list(lines: list[str], max_lines: int = 3) -> str:
    """Return the first lines as one, and the number of further ones."""
    more = f" (and {len(lines) - max_lines} more)" if len(lines) > max_lines else ""
    return "; ".join(lines[:max_lines]) + more
