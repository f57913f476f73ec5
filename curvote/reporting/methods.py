"""What methods are called on a page and how they are drawn, as their systems say."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from curvote.chain.lookup import systems
from curvote.chain.measure import Look, Method

OTHER: Final = Look("#7f52a3", "p")
_LAST = 1 << 30


def known() -> dict[str, Method]:
    """Return every method by its name: what a headline may state, others, references.

    A name means the same in all systems.
    """
    main = {name for one in systems() for name in one.main}
    every = {m.name: m for one in systems() for m in one.methods}

    def place(item: tuple[str, Method]) -> tuple[bool, bool, int]:
        name, method = item
        return method.reference, name not in main, method.rank

    return dict(sorted(every.items(), key=place))


def method_of(series: str) -> Method:
    """Return the method behind a series name; an unknown one is shown by its name."""
    protocol, _, name = series.rpartition(": ")
    found = known().get(name, Method(name, name, "", OTHER, _LAST))
    return replace(found, label=f"{protocol}: {found.label}") if protocol else found


def look(series: str) -> Look:
    """Return the look of a series ("method" or "protocol: method")."""
    return method_of(series).look
