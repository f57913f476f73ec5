"""Placeholders of a new pipelines.yaml: places marked TO_STATE, left to the user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from curvote.datasets.own.open_places import TO_STATE
from curvote.errors import KeyPath, Problem, UserError

# What to write, by the key that holds the mark; the innermost key that is here counts.
_EXPECTED: Final = {
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


def refuse_placeholders(values: Mapping[str, Any]) -> None:
    """Refuse (UserError) a pipeline with placeholders, a problem for each key."""
    by_key: dict[KeyPath, list[str]] = {}
    for where in _find_placeholders(values, ()):
        at = _described_key(where)
        by_key.setdefault(at, []).extend(_column_names(where[len(at) :]))
    if by_key:
        raise UserError.several(
            Problem(_describe_placeholder(at, list(dict.fromkeys(names))), at)
            for at, names in by_key.items()
        )


def _find_placeholders(value: Any, where: KeyPath) -> Iterator[KeyPath]:
    """Yield the path of each placeholder."""
    if value == TO_STATE:
        yield where
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _find_placeholders(inner, (*where, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _find_placeholders(inner, (*where, index))


def _described_key(where: KeyPath) -> KeyPath:
    """Return the path up to the innermost key that has a description."""
    described = [place for place, key in enumerate(where) if key in _EXPECTED]
    return where[: described[-1] + 1] if described else where


def _column_names(inside: KeyPath) -> list[str]:
    return [str(key) for key in inside[:1] if isinstance(key, str)]


def _describe_placeholder(at: KeyPath, names: list[str]) -> str:
    columns = f" for {', '.join(names)}" if names else ""
    expected = _EXPECTED.get(str(at[-1]), "what you mean")
    return f"still to be stated{columns}: in place of {TO_STATE} write {expected}."
