"""Settings of a pipeline: combinations of its axes, and the parts they lead to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from itertools import product
from typing import Any

from curvote.base.errors import UserError
from curvote.chain.axis import Cell
from curvote.chain.lookup import all_systems, find_system
from curvote.chain.registry import DEFAULT, SYSTEMS
from curvote.chain.system import Part
from curvote.messages.sizes import resolve_sizes
from curvote.pipeline.config.schema import Pipeline, pipeline_of

Values = dict[str, Any]
# The labels of a setting by axis, and its configuration.
Labelled = tuple[dict[str, str], Values]

# The axis of the protocols: a table's column by itself, so it stands without its name.
PROTOCOL = "protocol"
# What makes a run one run: it cannot differ between the settings of a pipeline.
FIXED = ("mode", "replicates", "seed", "schedule", "ledger", "intake", "grid")


def expand_settings(values: Mapping[str, Any]) -> Iterator[Labelled]:
    """Yield (axis -> label, configuration) for each combination of the axes.

    The first axis are the ``protocols``: names, or ``{name, label, dotted keys...}``.
    An axis of the ``grid`` is a dotted key with a list of values (``project.size: [4,
    5, 6]``), or any name with labels, each of which sets some dotted keys. Without
    axes the only setting has no labels. An axis that is not so, or that sets what a run
    has only once, is a UserError. What stands beside others unasked (`System`) is one
    more protocol at the end.
    """
    labelled = list(stated_settings(values))
    yield from labelled
    covered = {
        _with_protocol(labels, str(configuration.get(PROTOCOL)))
        for labels, configuration in labelled
    }
    # Of the settings that only their protocols tell apart it takes after the first.
    for labels, configuration in labelled:
        name = str(configuration.get(PROTOCOL, DEFAULT))
        for member in all_systems() if name in SYSTEMS else ():
            if not member.auto_include(find_system(name), configuration):
                continue
            place = _with_protocol(labels, member.name)
            if place not in covered:
                covered.add(place)
                added = deepcopy(configuration) | {PROTOCOL: member.name}
                added["label"] = member.name
                for path, value in member.implied_settings.items():
                    set_dotted(added, path, value)
                yield dict(place), added


def stated_settings(values: Mapping[str, Any]) -> Iterator[Labelled]:
    """Yield the settings that the configuration itself names."""
    grid = values.get("grid") or {}
    if not isinstance(grid, Mapping):
        raise UserError("must be a mapping of axes.", where=("grid",))
    if PROTOCOL in grid:
        message = "is no axis of a grid: list protocols under `protocols`."
        raise UserError(message, where=("grid", PROTOCOL))
    grid_axes = {name: _axis_changes(name, entries) for name, entries in grid.items()}
    axes = _protocol_axis(values) | grid_axes
    for chosen in product(*(axis.items() for axis in axes.values())):
        configuration = deepcopy(dict(values))
        for name, (label, changes) in zip(axes, chosen, strict=True):
            where = ("protocols",) if name == PROTOCOL else ("grid", name, label)
            for path, value in changes.items():
                if path.partition(".")[0] in FIXED:
                    message = f"{path} is the same for all settings of a pipeline."
                    raise UserError(message, where=where)
                try:
                    set_dotted(configuration, path, value)
                except UserError as error:
                    raise UserError(str(error), where=where) from None
        labels = (label for label, _ in chosen)
        yield dict(zip(axes, labels, strict=True)), configuration


def _with_protocol(
    labels: Mapping[str, str], protocol: str
) -> tuple[tuple[str, str], ...]:
    return tuple(({PROTOCOL: ""} | dict(labels) | {PROTOCOL: protocol}).items())


def setting_name(labels: Mapping[str, str]) -> str | None:
    """Return a setting's name, such as "mrma d=4"; None without axes."""
    words = (
        label if axis == PROTOCOL else f"{axis}={label}"
        for axis, label in labels.items()
    )
    return " ".join(words) or None


def labels_by_setting(config: Mapping[str, Any]) -> dict[str | None, dict[str, str]]:
    """Return the labels of every setting of a run by its name."""
    return {setting_name(labels): labels for labels, _ in expand_settings(config)}


def _protocol_axis(values: Mapping[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    listed = values.get("protocols") or []
    if not isinstance(listed, list):
        message = "must be a list of protocols."
        raise UserError(message, where=("protocols",))
    entries: list[tuple[str, dict[str, Any]]] = []
    for index, entry in enumerate(listed):
        keys = {"name": entry} if isinstance(entry, str) else entry
        if not isinstance(keys, Mapping) or not isinstance(keys.get("name"), str):
            message = "is a protocol: give its name, or {name, label, dotted keys}."
            raise UserError(message, where=("protocols", index))
        name, label = keys["name"], str(keys.get("label", keys["name"]))
        member = find_system(name) if name in SYSTEMS else None
        changes = {
            f"{name}.{key}" if member and key in member.shorthand else key: value
            for key, value in keys.items()
            if key not in ("name", "label")
        }
        fixed = member.implied_settings if member else {}
        entries.append((label, {"protocol": name, "label": label, **fixed, **changes}))
    labels = [label for label, _ in entries]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        message = f"{', '.join(twice)} stands twice; give each a label of its own."
        raise UserError(message, where=("protocols",))
    return {PROTOCOL: dict(entries)} if entries else {}


def _axis_changes(name: str, entries: Any) -> dict[str, dict[str, Any]]:
    if isinstance(entries, list) and entries:
        return {
            (f"{value:g}" if isinstance(value, float) else str(value)): {name: value}
            for value in entries
        }
    if isinstance(entries, Mapping) and entries:
        wrong = [label for label, keys in entries.items() if not isinstance(keys, dict)]
        if not wrong:
            return {str(label): dict(keys) for label, keys in entries.items()}
    message = (
        "is an axis: give a list of values for a dotted key, or labels that each set"
        " some, such as {small: {train.size: 50}}."
    )
    raise UserError(message, where=("grid", name))


def dotted_value(values: Mapping[str, Any], path: str) -> Any:
    """Return the value at the dotted key ``path``; None: there is none."""
    value: Any = values
    for part in path.split("."):
        value = value.get(part) if value else None
    return value


def set_dotted(values: Values, path: str, value: Any) -> None:
    """Set the dotted key ``path``; UserError where a part of it is no mapping."""
    *parents, last = path.split(".")
    section = values
    for parent in parents:
        inner = section.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise UserError(f"{parent} is not a mapping of settings.")
        section = inner
    section[last] = value


# Parts of a configuration, each with its setting's name.
Parts = list[tuple[str | None, Part]]


def resolve_parts(pipeline: Pipeline) -> Iterator[Part]:
    """Yield the parts of a pipeline: sizes are resolved first, then the system.

    A size that is left to a rule and cannot be told is a UserError.
    """
    for first in resolve_sizes(pipeline):
        for part in find_system(first.settings.protocol).resolve_parts(first.settings):
            yield replace(
                part,
                pairs=tuple((dict(first.pairs) | dict(part.pairs)).items()),
                method=", ".join(filter(None, (first.method, part.method))),
                reason="; ".join(filter(None, (first.reason, part.reason))),
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
