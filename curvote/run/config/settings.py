"""The axes of a pipeline, protocols among them: their combinations are its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import product
from typing import Any

from curvote.chain.lookup import system, systems
from curvote.chain.registry import DEFAULT, SYSTEMS
from curvote.chain.system import System
from curvote.errors import UserError

Values = dict[str, Any]
# The labels of a setting by axis, and its configuration.
Labelled = tuple[dict[str, str], Values]

# The axis of the protocols: a table's column by itself, so it stands without its name.
PROTOCOL = "protocol"
# What makes a run one run: it cannot differ between the settings of a pipeline.
FIXED = ("mode", "replicates", "seed", "schedule", "ledger", "intake", "grid")


def settings(values: Mapping[str, Any]) -> Iterator[Labelled]:
    """Yield (axis -> label, configuration) for each combination of the axes.

    The first axis are the ``protocols``: names, or ``{name, label, dotted keys...}``.
    An axis of the ``grid`` is a dotted key with a list of values (``project.size: [4,
    5, 6]``), or any name with labels, each of which sets some dotted keys. Without
    axes the only setting has no labels. An axis that is not so, or that sets what a run
    has only once, is a UserError. What stands beside others unasked (`System`) is one
    more protocol at the end.
    """
    asked = list(stated(values))
    yield from asked
    yield from _unasked(asked)


def stated(values: Mapping[str, Any]) -> Iterator[Labelled]:
    """Yield those of `settings` that the configuration itself names."""
    grid = {name: _axis(name, given) for name, given in _grid(values).items()}
    axes = _protocols(values) | grid
    for chosen in product(*(axis.items() for axis in axes.values())):
        own = deepcopy(dict(values))
        for name, (label, changes) in zip(axes, chosen, strict=True):
            for path, value in changes.items():
                _set(own, path, value, _place(name, label))
        yield dict(zip(axes, (label for label, _ in chosen), strict=True)), own


def _unasked(asked: Sequence[Labelled]) -> Iterator[Labelled]:
    """Yield a setting for each system that stands beside some of these unasked.

    Of the settings that only their protocols tell apart it takes after the first.
    """
    known = {_beside(labels, str(own.get(PROTOCOL))) for labels, own in asked}
    for labels, own in asked:
        for one in _companions(own):
            place = _beside(labels, one.name)
            if place not in known:
                known.add(place)
                yield dict(place), _as(one, own)


def _companions(own: Values) -> Iterator[System]:
    name = str(own.get(PROTOCOL, DEFAULT))
    if name in SYSTEMS:
        yield from (one for one in systems() if one.unasked(system(name), own))


def _beside(labels: Mapping[str, str], protocol: str) -> tuple[tuple[str, str], ...]:
    return tuple(({PROTOCOL: ""} | dict(labels) | {PROTOCOL: protocol}).items())


def _as(one: System, values: Values) -> Values:
    """Return the configuration under which a system does the same clients."""
    own = deepcopy(values) | {PROTOCOL: one.name, "label": one.name}
    for path, value in one.fixed.items():
        put(own, path, value)
    return own


def named(labels: Mapping[str, str]) -> str | None:
    """Return a setting's name, such as "mrma d=4"; None where there are no axes."""
    words = (
        label if axis == PROTOCOL else f"{axis}={label}"
        for axis, label in labels.items()
    )
    return " ".join(words) or None


def labels_of(config: Mapping[str, Any]) -> dict[str | None, dict[str, str]]:
    """Return the labels of every setting of a run by its name."""
    return {named(labels): labels for labels, _ in settings(config)}


def _protocols(values: Mapping[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    given = values.get("protocols") or []
    if not isinstance(given, list):
        message = "must be a list of protocols."
        raise UserError(message, where=("protocols",))
    entries = [_entry(one, index) for index, one in enumerate(given)]
    labels = [label for label, _ in entries]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        message = f"{', '.join(twice)} stands twice; give each a label of its own."
        raise UserError(message, where=("protocols",))
    return {PROTOCOL: dict(entries)} if entries else {}


def _entry(given: Any, index: int) -> tuple[str, dict[str, Any]]:
    """Return the label of a protocol and the dotted keys that it sets."""
    keys = {"name": given} if isinstance(given, str) else given
    if not isinstance(keys, Mapping) or not isinstance(keys.get("name"), str):
        message = "is a protocol: give its name, or {name, label, dotted keys}."
        raise UserError(message, where=("protocols", index))
    name, label = keys["name"], str(keys.get("label", keys["name"]))
    known = system(name) if name in SYSTEMS else None
    own = {
        f"{name}.{key}" if known and key in known.short else key: value
        for key, value in keys.items()
        if key not in ("name", "label")
    }
    fixed = known.fixed if known else {}
    return label, {"protocol": name, "label": label, **fixed, **own}


def _grid(values: Mapping[str, Any]) -> Mapping[str, Any]:
    grid = values.get("grid") or {}
    if not isinstance(grid, Mapping):
        raise UserError("must be a mapping of axes.", where=("grid",))
    if PROTOCOL in grid:
        message = "is no axis of a grid: list protocols under `protocols`."
        raise UserError(message, where=("grid", PROTOCOL))
    return grid


def _axis(name: str, given: Any) -> dict[str, dict[str, Any]]:
    if isinstance(given, list) and given:
        return {_text(value): {name: value} for value in given}
    if isinstance(given, Mapping) and given:
        wrong = [label for label, keys in given.items() if not isinstance(keys, dict)]
        if not wrong:
            return {str(label): dict(keys) for label, keys in given.items()}
    message = (
        "is an axis: give a list of values for a dotted key, or labels that each set"
        " some, such as {small: {train.size: 50}}."
    )
    raise UserError(message, where=("grid", name))


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _set(values: Values, path: str, value: Any, where: tuple[str, ...]) -> None:
    if path.partition(".")[0] in FIXED:
        message = f"{path} is the same for all settings of a pipeline."
        raise UserError(message, where=where)
    try:
        put(values, path, value)
    except UserError as error:
        raise UserError(str(error), where=where) from None


def _place(axis: str, label: str) -> tuple[str, ...]:
    return ("protocols",) if axis == PROTOCOL else ("grid", axis, label)


def dotted(values: Mapping[str, Any], path: str) -> Any:
    """Return what stands at the dotted key ``path``, None where there is nothing."""
    here: Any = values
    for part in path.split("."):
        here = here.get(part) if here else None
    return here


def put(values: Values, path: str, value: Any) -> None:
    """Set the dotted key ``path``; UserError where a part of it is no mapping."""
    *parents, last = path.split(".")
    here = values
    for parent in parents:
        inner = here.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise UserError(f"{parent} is not a mapping of settings.")
        here = inner
    here[last] = value
