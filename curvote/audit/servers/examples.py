"""Small example tasks of every form, for the audit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curvote.classes import Classes
from curvote.transfer.forms import FORMS, form
from curvote.transfer.task import PROTOCOL, Feature, Level, Task

FEATURES = (Feature("a", 0.0, 1.0), Feature("b", -2.0, 2.0))
CLASSES = Classes(("no", "yes"))
SERVER = "one"
# The records of a table in which every pair of neighbours is looked at.
RECORDS = 4
LEVELS = (0.5, 2.0, 10.0)
# n^-2, and a stated one.
DELTAS = (None, 1e-4)
# Few numbers, so that one release draws quickly; of two cells to a grid, all hashed.
_CELLS = {"grids": 64, "order": 2, "cells": 256}
# Corners of [-1, 1]^2 are cut to a length of 1.4: opposite ones are orthogonal.
_MOMENTS = {"cut": 1.4}
_KERNEL: dict[str, Any] = {"grids": 8, "bandwidths": [1.0, 0.5], "cells": 64}
_EXAMPLE_PARAMS: Mapping[str, Mapping[str, Any]] = {
    "cells": _CELLS,
    "moments": _MOMENTS,
    "moments_joint": _MOMENTS | {"arm": "joint"},
    "kernel": _KERNEL,
    "kernel_half": _KERNEL | {"centre": "half"},
    "kernel_waves": _KERNEL | {"kernel": "gaussian"},
}


def example_names() -> list[str]:
    """Return ``transfer.NAME`` for each form and arm, without forms of studies."""
    plain = [name for name in FORMS if not form(name).study]
    return [f"{PROTOCOL}.{name}" for name in dict.fromkeys([*_EXAMPLE_PARAMS, *plain])]


def example_task(name: str, level: Level, **more: Any) -> Task:
    """Return the task of ``transfer.NAME`` for one server; ``more`` are parameters.

    ``NAME@K`` is about so many classes, 2 without.
    """
    key, _, count = name.rpartition(".")[2].partition("@")
    classes = Classes(map(str, range(int(count)))) if count else CLASSES
    params = {**_EXAMPLE_PARAMS.get(key, {}), **more}
    kind = key if key in FORMS else key.partition("_")[0]
    return Task(FEATURES, classes, {SERVER: level}, kind, params)
