"""Data of a report: typed tables and metadata, methods, and the score table."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from curvote.chain.lookup import all_systems
from curvote.chain.measure import Look, Method

OTHER_LOOK: Final = Look("#7f52a3", "p")
_LAST_RANK = 1 << 30


def methods_by_name() -> dict[str, Method]:
    """Return every method by name: main ones first, references last.

    A name means the same in all systems.
    """
    main = {name for member in all_systems() for name in member.main}
    methods = {m.name: m for member in all_systems() for m in member.methods}

    def rank(item: tuple[str, Method]) -> tuple[bool, bool, int]:
        name, method = item
        return method.reference, name not in main, method.rank

    return dict(sorted(methods.items(), key=rank))


def find_method(series: str) -> Method:
    """Return the method of a series; an unknown one has its name as label."""
    protocol, _, name = series.rpartition(": ")
    method = methods_by_name().get(name, Method(name, name, "", OTHER_LOOK, _LAST_RANK))
    return replace(method, label=f"{protocol}: {method.label}") if protocol else method


def series_look(series: str) -> Look:
    """Return the look of a series ("method" or "protocol: method")."""
    return find_method(series).look
