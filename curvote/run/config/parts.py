"""Parts of a resolved configuration: one for each system that it leads to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from curvote.chain.axis import Cell
from curvote.chain.lookup import find_system
from curvote.chain.system import Part
from curvote.protocols.sizes import resolve_sizes
from curvote.run.config.schema import Pipeline, pipeline_of
from curvote.run.config.settings import expand_settings, setting_name

# Parts of a configuration, each with its setting's name.
Parts = list[tuple[str | None, Part]]


def resolve_parts(pipeline: Pipeline) -> Iterator[Part]:
    """Yield the parts of a pipeline: sizes are resolved first, then the system.

    A size that is left to a rule and cannot be told is a UserError.
    """
    for first in resolve_sizes(pipeline):
        for part in find_system(first.settings.protocol).resolve_parts(first.settings):
            yield _merge_parts(first, part)


def _merge_parts(first: Part, then: Part) -> Part:
    """Return ``then`` with the choices of both parts."""
    return replace(
        then,
        pairs=tuple((dict(first.pairs) | dict(then.pairs)).items()),
        method=", ".join(filter(None, (first.method, then.method))),
        reason="; ".join(filter(None, (first.reason, then.reason))),
    )


def labelled_parts(config: Mapping[str, Any]) -> Iterator[tuple[str | None, Part]]:
    """Yield (setting's name, part) of a run's configuration, in order."""
    for labels, values in expand_settings(config):
        pipeline = pipeline_of(values)
        for part in resolve_parts(pipeline):
            yield setting_name(labels), part


def part_of_cell(config: Mapping[str, Any], cell: Cell) -> Part:
    """Return the part of a run's configuration to which a cell belongs."""
    return find_part(labelled_parts(config), cell)


def find_part(labelled: Iterable[tuple[str | None, Part]], cell: Cell) -> Part:
    """Return the part, of several, to which a cell belongs."""
    return next(
        part
        for setting, part in labelled
        if setting == cell["setting"]
        and (cell["protocol"] in (None, part.settings.called))
        and set(part.pairs) <= set(cell.pairs)
    )


def describe_choices(config: Mapping[str, Any]) -> list[str]:
    """Return a line for each choice that was left to a rule, with its reason.

    Protocols of which the same is said share a line.
    """
    protocols: dict[tuple[str, str], list[str]] = {}
    for _, part in labelled_parts(config):
        if part.reason:
            choice = Cell(part.pairs).words, f"{part.method} ({part.reason})"
            protocols.setdefault(choice, []).append(part.settings.called)
    return [
        f"{', '.join(filter(None, (*dict.fromkeys(names), words)))}: {choice}"
        for (words, choice), names in protocols.items()
    ]
