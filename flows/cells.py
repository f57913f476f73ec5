"""What is logged about one cell of a run: metrics, params and stage keys."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from curvote.chain.axis import Cell
from curvote.run.config.settings import named as named_setting
from curvote.run.history import RunRecord

Rows = Iterable[Mapping[str, Any]]
Metrics = dict[str, float]
ARMS = ("mean", "joint", "two")


def by_cell(rows: Rows) -> dict[Cell, Metrics]:
    """Return the metrics of each child: its own and those that its epsilon shares.

    A method without a learner, such as the majority, is copied into every child of its
    (protocol, epsilon); it gets a child of its own only where there is none.
    """
    own: dict[Cell, Metrics] = {}
    for row in rows:
        own.setdefault(_cell(row), {}).update(_metrics(row))
    shared = {cell: m for cell, m in own.items() if cell["learner"] is None}
    cells = {
        cell: metrics | shared.get(cell.with_(learner=None), {})
        for cell, metrics in own.items()
        if cell["learner"] is not None
    }
    served = {cell.with_(learner=None) for cell in cells}
    return cells | {cell: m for cell, m in shared.items() if cell not in served}


def _cell(row: Mapping[str, Any]) -> Cell:
    names = ("protocol", "epsilon", "learner", "arrival")
    setting = named_setting(row.get("setting", {}))
    protocol, *others = names
    here = {protocol: row[protocol], "setting": setting}
    return Cell.of(here | {name: row.get(name) for name in others})


def stage_keys(record: RunRecord, cell: Cell) -> dict[str, str]:
    """Return the key of every stage that ``cell`` was computed from."""
    steps = [(Cell.of(step["cell"]), step) for step in record.steps]
    serving = [(own, step) for own, step in steps if own.serves(cell)]
    ordered = sorted(serving, key=lambda pair: len(pair[0].pairs))
    return {step["stage"]: step["key"] for _, step in ordered}


def scalars(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the short scalars of a configuration as params, under their own names.

    What would be ambiguous, such as ``size``, keeps its path: ``train.size``.
    """
    paths = dict(_walk(config))
    leaves = Counter(_leaf(path) for path in paths)
    return {
        (_leaf(path) if leaves[_leaf(path)] == 1 else path): str(value)
        for path, value in paths.items()
    }


def _leaf(path: str) -> str:
    """Return the last part of a dotted path; "name" alone would say nothing."""
    head, _, leaf = path.rpartition(".")
    return path if leaf == "name" and head else leaf


def named(cell: Cell) -> dict[str, str]:
    """Return protocol, epsilon and learner as params."""
    return {
        name: f"{value:g}" if isinstance(value, float) else str(value)
        for name, value in cell.pairs
    }


def _walk(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _walk(value, f"{prefix}{name}.")
        elif isinstance(value, str | int | float) and len(str(value)) <= 100:
            yield prefix + name, value


def _metrics(row: Mapping[str, Any]) -> Metrics:
    values = {"misclassification": row["misclassification"]}
    values["misclassification_se"] = row["se"]
    method = ".group-".join(filter(None, (row["method"], row.get("group"))))
    # The arm differs from epsilon to epsilon; a comparison needs one name for all.
    names = [method, row["protocol"]] if row["method"] in ARMS else [method]
    return {
        f"{name}.{called}": float(value)
        for name, value in values.items()
        for called in names
        if value is not None and math.isfinite(value)
    }
