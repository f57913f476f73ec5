"""What a resolved configuration stands for: one part for each system it leads to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from curvote.chain.axis import Cell
from curvote.chain.lookup import system
from curvote.chain.system import Part
from curvote.run.config.schema import pipeline_of
from curvote.run.config.settings import named, settings


def parts_of(config: Mapping[str, Any]) -> Iterator[tuple[str | None, Part]]:
    """Yield (setting's name, part) of a run's configuration, setting after setting."""
    for labels, own in settings(config):
        pipeline = pipeline_of(own)
        for part in system(pipeline.protocol).parts(pipeline):
            yield named(labels), part


def part_of(config: Mapping[str, Any], cell: Cell) -> Part:
    """Return the part of a run's configuration that a cell belongs to."""
    return belonging(parts_of(config), cell)


def belonging(parts: Iterable[tuple[str | None, Part]], cell: Cell) -> Part:
    """Return which of the parts of a configuration a cell belongs to."""
    return next(
        part
        for setting, part in parts
        if setting == cell["setting"]
        and (cell["protocol"] in (None, part.settings.called))
        and set(part.pairs) <= set(cell.pairs)
    )


def reasons(config: Mapping[str, Any]) -> list[str]:
    """Return what was left to a rule, and what it took, a line for each cell."""
    return [
        f"{part.settings.called}, {Cell(part.pairs).words}: {part.method}"
        f" ({part.reason})"
        for _, part in parts_of(config)
        if part.reason
    ]
