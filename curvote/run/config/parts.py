"""What a resolved configuration stands for: one part for each system it leads to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from curvote.chain.axis import Cell
from curvote.chain.lookup import system
from curvote.chain.system import Part
from curvote.protocols.sizes import sized
from curvote.run.config.schema import Pipeline, pipeline_of
from curvote.run.config.settings import named, settings

# Parts of a configuration, each with its setting's name.
Parts = list[tuple[str | None, Part]]


def parts(pipeline: Pipeline) -> Iterator[Part]:
    """Yield what settings stand for: sizes first, then what the system makes of each.

    A size that is left to a rule and cannot be told is a UserError.
    """
    for first in sized(pipeline):
        for part in system(first.settings.protocol).parts(first.settings):
            yield _both(first, part)


def _both(first: Part, then: Part) -> Part:
    """Return ``then`` with what was left to a rule before it."""
    return replace(
        then,
        pairs=tuple((dict(first.pairs) | dict(then.pairs)).items()),
        method=", ".join(filter(None, (first.method, then.method))),
        reason="; ".join(filter(None, (first.reason, then.reason))),
    )


def parts_of(config: Mapping[str, Any]) -> Iterator[tuple[str | None, Part]]:
    """Yield (setting's name, part) of a run's configuration, setting after setting."""
    for labels, own in settings(config):
        pipeline = pipeline_of(own)
        for part in parts(pipeline):
            yield named(labels), part


def part_of(config: Mapping[str, Any], cell: Cell) -> Part:
    """Return the part of a run's configuration that a cell belongs to."""
    return belonging(parts_of(config), cell)


def belonging(among: Iterable[tuple[str | None, Part]], cell: Cell) -> Part:
    """Return which of the parts of a configuration a cell belongs to."""
    return next(
        part
        for setting, part in among
        if setting == cell["setting"]
        and (cell["protocol"] in (None, part.settings.called))
        and set(part.pairs) <= set(cell.pairs)
    )


def reasons(config: Mapping[str, Any]) -> list[str]:
    """Return what was left to a rule, and what it took, a line for each such cell.

    Protocols of which the same is said share a line.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for _, part in parts_of(config):
        if part.reason:
            told = Cell(part.pairs).words, f"{part.method} ({part.reason})"
            found.setdefault(told, []).append(part.settings.called)
    return [
        f"{', '.join(filter(None, (*dict.fromkeys(names), words)))}: {told}"
        for (words, told), names in found.items()
    ]
