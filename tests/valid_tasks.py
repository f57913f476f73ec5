"""Tasks as curvote publishes them: every protocol, basis, rescaling and mechanism."""

import json
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from curvote.chain.registry import SYSTEMS
from curvote.curves.basis import (
    Projection,
    grid_projection,
    identity,
    orthonormal,
    projection,
)
from curvote.curves.encoding import FEATURE_MAPS, RESCALING_CONSTANTS, Encoding
from curvote.messages.message import messages_of
from curvote.wire.task import Task

GRID = np.linspace(0, 1, 12)
OF_NUMBERS = {
    "laplace": {},
    "duchi": {},
    "piecewise": {},
    "hybrid": {},
    "pm_01": {},
    "sw_01": {},
    "square_wave": {},
    "exponential": {"size": 21},
    "sampled": {"mechanism": "duchi", "k": 2},
    "joint_box": {},
    "duchi_vector": {},
    "gaussian": {"delta": 1e-6},
}


@lru_cache
def projections() -> tuple[Projection, ...]:
    """Return one projection of every kind."""
    spline = projection("bspline", 4, GRID)
    return (
        spline,
        orthonormal(spline),
        projection("fourier", 5, GRID),
        identity(3),
        grid_projection(GRID[:4]),
        orthonormal(projection("bspline", 4, GRID, derivative=1)).stacked(("x", "y")),
    )


def constants(rescale: str, d: int) -> dict[str, np.ndarray]:
    """Return public constants of one rescaling."""
    known = {"centre": 0.5, "scale": 2.0, "lower": -3.0, "upper": 5.0}
    return {name: np.full(d, known[name]) for name in RESCALING_CONSTANTS[rescale]}


def encodings() -> list[Encoding]:
    """Return each projection with each rescaling, the feature maps in turn."""
    kinds = [
        (onto, rescale) for onto in projections() for rescale in RESCALING_CONSTANTS
    ]
    return [
        Encoding(onto, rescale, public, FEATURE_MAPS[i % 3], smooth=bool(onto.channels))
        for i, (onto, rescale) in enumerate(kinds)
        for public in [constants(rescale, len(onto.matrix))]
    ]


@lru_cache
def tasks() -> dict[str, Task]:
    """Return tasks by name: each message of each protocol that asks single clients."""
    found: dict[str, Task] = {}
    for protocol in SYSTEMS:
        kinds = messages_of(protocol).items()
        for asks, message in (
            (k, m)
            for k, m in kinds
            if not (m.per_table or m.per_record or m.about_model)
        ):
            for i, encoding in enumerate(encodings()):
                stated = Task(encoding, ("no", "yes"), 1.0 + i / 8, protocol, asks)
                task = message.nominal_task(stated)
                found[f"{protocol}-{task.asks}-{i}"] = task
    report = found["mrma-report-0"]
    for mechanism, params in OF_NUMBERS.items():
        other = replace(report, mechanism=mechanism, params=params, label_share=0.25)
        found[f"mechanism-{mechanism}"] = other
    return found


def document(task: Task) -> Any:
    """Return a task as a client reads it."""
    return json.loads(json.dumps(task.to_json()))
