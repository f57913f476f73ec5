"""The grid of a pipeline: named axes, whose combinations are its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from itertools import product
from typing import Any

from curvote.errors import Problem, UserError

Values = dict[str, Any]

# What makes a run one run: it cannot differ between the settings of a pipeline.
FIXED = ("mode", "replicates", "seed", "schedule", "ledger", "intake", "grid")


def settings(values: Mapping[str, Any]) -> Iterator[tuple[dict[str, str], Values]]:
    """Yield (axis -> label, configuration) for each combination of the grid's axes.

    An axis is a dotted key with a list of values (``project.size: [4, 5, 6]``), or any
    name with labels, each of which sets some dotted keys. Without a grid the only
    setting has no labels. An axis that is not so, or that sets what a run has only
    once, is a UserError.
    """
    axes = {name: _axis(name, given) for name, given in _grid(values).items()}
    for chosen in product(*(axis.items() for axis in axes.values())):
        own = deepcopy(dict(values))
        for name, (label, changes) in zip(axes, chosen, strict=True):
            for path, value in changes.items():
                _set(own, path, value, (name, label))
        yield dict(zip(axes, (label for label, _ in chosen), strict=True)), own


def named(labels: Mapping[str, str]) -> str | None:
    """Return a setting's name, such as "d=4 form=published"; None without a grid."""
    return " ".join(f"{axis}={label}" for axis, label in labels.items()) or None


def of_config(config: Mapping[str, Any], setting: str | None) -> Values:
    """Return a run's configuration as the setting of this name had it."""
    return next(own for labels, own in settings(config) if named(labels) == setting)


def labels_of(config: Mapping[str, Any]) -> dict[str | None, dict[str, str]]:
    """Return the labels of every setting of a run by its name."""
    return {named(labels): labels for labels, _ in settings(config)}


def _grid(values: Mapping[str, Any]) -> Mapping[str, Any]:
    grid = values.get("grid") or {}
    if not isinstance(grid, Mapping):
        raise _problem("must be a mapping of axes.", ())
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
    raise _problem(message, (name,))


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _set(values: Values, path: str, value: Any, where: tuple[str, ...]) -> None:
    if path.partition(".")[0] in FIXED:
        raise _problem(f"{path} is the same for all settings of a pipeline.", where)
    try:
        put(values, path, value)
    except UserError as error:
        raise _problem(str(error), where) from None


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


def _problem(message: str, where: tuple[str, ...]) -> UserError:
    return UserError.several([Problem(message, ("grid", *where))])
