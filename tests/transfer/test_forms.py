"""Forms: what one record moves, by every neighbour of small tables; their features."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from curvote.systems.transfer.method.features import Grids
from curvote.systems.transfer.method.task import Task, form

ONE_OF_EACH: list[tuple[str, dict[str, Any]]] = [
    ("cells", {"grids": 5, "pitch": 0.5}),
    ("cells", {"grids": 5, "pitch": 0.3, "cells": 30}),
    ("moments", {}),
    ("moments", {"arm": "joint"}),
    ("moments", {"cut": 4.0, "scale": 0.1, "centre": [0.2, 0.5]}),
    ("counts", {}),
]
each_form = pytest.mark.parametrize(("release", "params"), ONE_OF_EACH)


def _task(release: str, params: dict[str, Any], classes: int = 3, d: int = 2) -> Task:
    features = [(f"x{k}", 0, 1) for k in range(d)]
    names = [str(k) for k in range(classes)]
    return Task(features, names, {"a": 1.0}, release=release, params=params)


def _records(classes: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return every record on a grid of points, corners included, with every label."""
    points = itertools.product(np.linspace(0, 1, 5), repeat=2)
    return [
        (np.array([point]), np.array([label]))
        for point in points
        for label in range(classes)
    ]


@each_form
def test_no_neighbour_moves_the_sums_further(
    release: str, params: dict[str, Any]
) -> None:
    """All pairs of records: a table's sums are those of its records, so all tables."""
    task = _task(release, params)
    kind = form(task.release)
    alone = np.array([kind.sums(task, *record) for record in _records(3)])
    assert alone.dtype == np.int64
    apart = ((alone[:, None] - alone[None]).astype(float) ** 2).sum(axis=-1)
    most = kind.sensitivity(task)
    assert math.sqrt(apart.max()) <= most
    assert math.sqrt(apart.max()) > 0.9 * most  # the bound says no more than is needed


@each_form
def test_a_table_is_the_sum_of_its_records(
    release: str, params: dict[str, Any]
) -> None:
    """Sums are additive, in whole numbers: one record's part is its own."""
    task = _task(release, params)
    kind, records = form(task.release), _records(3)
    points, labels = (np.concatenate(part) for part in zip(*records, strict=True))
    whole = kind.sums(task, points, labels)
    assert (whole == sum(kind.sums(task, *record) for record in records)).all()
    assert whole.shape == (kind.length(task),)
    none = kind.sums(task, points[:0], labels[:0])
    assert none.shape == whole.shape
    assert not none.any()


@each_form
def test_features_have_norm_1_and_are_never_opposed(
    release: str, params: dict[str, Any]
) -> None:
    """<phi(x), phi(y)> is 1 where x = y and nowhere negative: classes need sqrt 2."""
    task = _task(release, params)
    kind = form(task.release)
    cube = np.random.default_rng(1).random((40, 2))
    label = np.zeros(1, dtype=np.int64)
    sums = [kind.sums(task, point[None], label) for point in cube]
    phi = np.stack([kind.weights(task, each.astype(float))[0] for each in sums])
    inner = kind.product(task, cube, phi)
    assert np.diag(inner) == pytest.approx(1, abs=1e-5)
    assert inner.min() >= -1e-9
    assert inner == pytest.approx(phi @ phi.T, abs=1e-5)


def test_random_grids_agree_with_the_triangular_kernel() -> None:
    """Root mean square below .02 over 1,000 pairs of three numbers, 20,000 grids."""
    grids = Grids(3, 20_000, 3, 0.8, 10**6, 4)
    rng = np.random.default_rng(0)
    one = rng.random((1000, 3))
    other = np.clip(one + rng.uniform(-0.4, 0.4, one.shape), 0, 1)
    kernel = np.maximum(0, 1 - np.abs(one - other) / 0.8).prod(axis=1)
    same = np.concatenate(
        [
            (grids.places(one[k : k + 50]) == grids.places(other[k : k + 50])).mean(1)
            for k in range(0, 1000, 50)
        ]
    )
    assert np.sqrt(((same - kernel) ** 2).mean()) < 0.02
    assert kernel.std() > 0.1


@pytest.mark.parametrize("buckets", [7, 10**6])
@pytest.mark.parametrize("pitch", [0.21, 0.5, 1.0, 3.0])
def test_every_point_stands_in_one_cell_of_each_grid(
    buckets: int, pitch: float
) -> None:
    """Corners too; hashing keeps one cell a grid, and a place is of its own grid."""
    grids = Grids(3, 50, 2, pitch, buckets, 1)
    corners = np.array(list(itertools.product([0.0, 0.5, 1.0], repeat=3)))
    places = grids.places(corners)
    assert (places // grids.cells == np.arange(50)).all()
    assert grids.counts(corners).sum() == places.size
    assert (
        grids.counts(corners) == np.bincount(places.ravel(), minlength=grids.length)
    ).all()
    assert grids.cells <= buckets


def test_moments_joint_tells_the_second_moment() -> None:
    """Without noise it is sum u u' / n, whatever the share."""
    from curvote.systems.transfer.method.release import release

    rng = np.random.default_rng(0)
    X, y = rng.random((30, 2)), rng.integers(0, 3, 30).astype(str)
    task = Task(
        [("a", 0, 1), ("b", 0, 1)],
        ("0", "1", "2"),
        {"s": "public"},
        release="moments",
        params={"arm": "joint", "share": 0.3},
    )
    kind = form("moments")
    u = kind.directions(task, X)  # type: ignore[attr-defined]
    second = kind.side(task, release(task, "s", X, y)).second
    assert second == pytest.approx(u.T @ u / 30, abs=1e-4)
