"""Text of budgets, factors and names for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

# Above it e^epsilon is said as a power of ten: nobody can imagine it, and from 710 on
# no double holds it.
_LARGEST_FACTOR: Final = 20.0
_LONGEST_NAME: Final = 40  # characters of a name that is shown
_MAX_NAMES: Final = 20  # names that are listed


def format_budget(epsilon: float, delta: float) -> str:
    """Return a budget as text, its delta always."""
    return f"epsilon {epsilon:g}, delta {delta:g}"


def format_factor(epsilon: float) -> str:
    """Return e^epsilon, the largest factor on odds, as text."""
    if epsilon > _LARGEST_FACTOR:
        return f"10^{math.ceil(epsilon / math.log(10))}"
    times = math.exp(epsilon)
    return f"{times:.3g}" if times < 1000 else f"{math.ceil(times):,}"


def printable_name(name: str) -> str:
    """Return a foreign ``name`` that fits one line of a terminal.

    Line breaks, control sequences and invisible characters (which could rewrite the
    line around them) become question marks; what is too long is cut.
    """
    harmless = "".join(
        character if character.isprintable() else "?" for character in name
    )
    return (
        harmless if len(harmless) <= _LONGEST_NAME else f"{harmless[:_LONGEST_NAME]}.."
    )


def format_names(names: Sequence[str]) -> str:
    """Return foreign names joined by slashes, the first of many."""
    joined = "/".join(map(printable_name, names[:_MAX_NAMES]))
    return joined if len(names) <= _MAX_NAMES else f"{joined}/.. ({len(names)} in all)"
