"""What a new pipelines.yaml leaves to its user: places marked TO_STATE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from curvote.datasets.own.open_places import TO_STATE
from curvote.errors import Problem, UserError, Where

# What to write, by the key that holds the mark; the innermost key that is here counts.
_MEANT: Final = {
    "bounds": "two numbers known without the data, such as [0, 120]",
    "categories": "the texts that may stand there, such as [f, m]",
    "positive": "the label of the class that a classifier is to find, such as ill",
    "label": "the name of the column that says who is of which class",
    "id": "the name of the column that says whose row it is",
    "time": "the name of the column of times",
    "value": "the name of the column of measurements",
    "grid": "numbers in `unit`, such as {start: 0, stop: 24, points: 49}",
    "unit": "the unit of time: s, min, h, d or another word",
    "clients": "whole numbers, such as {train: 300, test: 80}",
    "gaps": "the longest time, in `unit`, without a measurement, such as 3",
}


def refuse_unstated(values: Mapping[str, Any]) -> None:
    """Refuse (UserError) a pipeline that still holds marks, a problem for each key."""
    found: dict[Where, list[str]] = {}
    for where in _marked(values, ()):
        at = _meant(where)
        found.setdefault(at, []).extend(_names(where[len(at) :]))
    if found:
        raise UserError.several(
            Problem(_said(at, list(dict.fromkeys(names))), at)
            for at, names in found.items()
        )


def _marked(value: Any, where: Where) -> Iterator[Where]:
    """Yield the path of each mark."""
    if value == TO_STATE:
        yield where
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _marked(inner, (*where, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _marked(inner, (*where, index))


def _meant(where: Where) -> Where:
    """Return the part of a path up to the key that says what is to be written."""
    known = [place for place, key in enumerate(where) if key in _MEANT]
    return where[: known[-1] + 1] if known else where


def _names(inside: Where) -> list[str]:
    return [str(key) for key in inside[:1] if isinstance(key, str)]


def _said(at: Where, names: list[str]) -> str:
    of = f" for {', '.join(names)}" if names else ""
    meant = _MEANT.get(str(at[-1]), "what you mean")
    return f"still to be stated{of}: in place of {TO_STATE} write {meant}."
