"""Numbers and names as a person reads them before noise is drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

# Above it e^epsilon is said as a power of ten: nobody can imagine it, and from 710 on
# no double holds it.
_IMAGINABLE: Final = 20.0
_LONGEST: Final = 40  # characters of a name that is shown
_MOST: Final = 20  # names that are listed


def said(epsilon: float, delta: float) -> str:
    """Return a budget in words: delta always, also where it is 0."""
    return f"epsilon {epsilon:g}, delta {delta:g}"


def factor(epsilon: float) -> str:
    """Return e^epsilon, the most by which odds about a person may change."""
    if epsilon > _IMAGINABLE:
        return f"10^{math.ceil(epsilon / math.log(10))}"
    times = math.exp(epsilon)
    return f"{times:.3g}" if times < 1000 else f"{math.ceil(times):,}"


def printable(name: str) -> str:
    """Return a ``name`` that somebody else has chosen, fit for one line of a terminal.

    Line breaks, control sequences and invisible characters (which could rewrite the
    line around them) become question marks; what is too long is cut.
    """
    harmless = "".join(each if each.isprintable() else "?" for each in name)
    return harmless if len(harmless) <= _LONGEST else f"{harmless[:_LONGEST]}.."


def listed(names: Sequence[str]) -> str:
    """Return names that somebody else has chosen, as in no/yes; the first of many."""
    shown = "/".join(map(printable, names[:_MOST]))
    return shown if len(names) <= _MOST else f"{shown}/.. ({len(names)} in all)"
