"""Servers with a signal, small enough for tests: two or more classes in two numbers."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base.entropy import SeededEntropy
from curvote.systems.transfer.method.phases import Servers, target_level
from curvote.systems.transfer.method.release import Release, release
from curvote.systems.transfer.method.task import Task

Table = tuple[NDArray[Any], NDArray[Any]]
FEATURES = [("age", 20, 90), ("pulse", 40, 200)]


def table(n: int, seed: int, classes: int = 2, *, flipped: bool = False) -> Table:
    """Return records whose classes lie on a circle around the centre, and labels."""
    rng = np.random.default_rng(seed)
    place = rng.integers(0, classes, n)
    angle = 2 * np.pi * place / classes
    z = np.column_stack([np.cos(angle), np.sin(angle)]) * 0.4
    z = np.clip(z + rng.normal(0, 0.25, z.shape), -1, 1)
    told = classes - 1 - place if flipped else place
    return z * [35, 80] + [55, 120], np.array([f"c{k}" for k in told])


def task(
    levels: Mapping[str, Any], form: str = "moments", classes: int = 2, **more: Any
) -> Task:
    """Return a task for these servers."""
    names = [f"c{k}" for k in range(classes)]
    return Task(FEATURES, names, levels, release=form, **more)


def releases(asked: Task, tables: Mapping[str, Table], seed: int = 0) -> list[Release]:
    """Return what each server sends."""
    entropy = {name: SeededEntropy(seed) for name in tables}
    return [release(asked, name, *each, entropy[name]) for name, each in tables.items()]


def radius(
    n: Any, epsilon: Any, *exponents: Any, delta: Any = None, **named: Any
) -> float:
    """Return r of (5), with ``delta`` of (11), for gamma, beta and d."""
    servers = Servers.of(n, epsilon, *exponents, **named)
    return servers.radius(target_level(servers.epsilon, delta, servers.n.size))
