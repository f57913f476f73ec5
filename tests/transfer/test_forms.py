"""Forms: what one record moves, by every neighbour of small tables; their features."""

import copy
import itertools
import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from curvote.base.classes import Classes
from curvote.base.entropy import SeededEntropy, Words
from curvote.base.errors import UserError
from curvote.mechanisms.gaussian import GaussianNoise
from curvote.messages.answer import validate_task
from curvote.messages.message import ClientData, message_of
from curvote.systems.transfer.method.features import Grids
from curvote.systems.transfer.method.model import combine
from curvote.systems.transfer.method.release import release, release_noise
from curvote.systems.transfer.method.task import FORMS, Feature, Level, Task, form

ONE_OF_EACH: list[tuple[str, dict[str, Any]]] = [
    ("cells", {"grids": 5, "pitch": 0.5}),
    ("cells", {"grids": 5, "pitch": 0.3, "cells": 30}),
    ("moments", {}),
    ("moments", {"arm": "joint"}),
    ("cells", {"grids": 5, "pitch": 0.5, "centring": "sums"}),
    ("moments", {"centring": "sums"}),
    ("moments", {"arm": "joint", "centring": "sums"}),
    ("moments", {"arm": "joint", "centring": "sums", "share": 0.3}),
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
    """<phi(x), phi(y)> is 1 where x = y and nowhere negative: classes need sqrt 2.

    Numbers that count are shorter, 1 where a record is cut.
    """
    task = _task(release, params)
    kind = form(task.release)
    cube = np.random.default_rng(1).random((40, 2))
    label = np.zeros(1, dtype=np.int64)
    sums = [kind.sums(task, point[None], label) for point in cube]
    phi = np.stack([kind.weights(task, each.astype(float))[0] for each in sums])
    inner = kind.product(task, cube, phi)
    if release == "moments" and "centring" in params:
        assert (np.diag(inner) < 1 + 1e-5).all()
        assert phi[:, 0] == pytest.approx(math.sqrt(0.5), abs=1e-6)
    else:
        assert np.diag(inner) == pytest.approx(1, abs=1e-5)
    assert inner.min() >= -1e-6
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
    task = replace(task, params=task.params | {"centring": "sums"})
    v = kind.directions(task, X)[:, 1:]  # type: ignore[attr-defined]
    side = kind.side(task, release(task, "s", X, y))
    assert side.second == pytest.approx(np.cov(v.T, bias=True), abs=1e-4)
    assert side.centre == pytest.approx(v.mean(axis=0), abs=1e-4)


FINE: list[tuple[str, dict[str, Any]]] = [
    ("moments", {"centring": "sums"}),
    ("moments", {"arm": "joint", "centring": "sums"}),
    ("cells", {"order": 2, "pitch": 0.5, "centring": "sums"}),
]


@pytest.mark.parametrize(("release_", "params"), FINE)
def test_rates_are_counted_and_a_plane_lies_between_the_classes(
    release_: str, params: dict[str, Any]
) -> None:
    """Far from the centre, of one class off to the side: neither needs symmetry."""
    rng = np.random.default_rng(1)
    y = rng.random(4000) < 0.292
    X = rng.normal([0.8, 0.85], 0.08, (4000, 2)) - np.outer(y, [0.0, 0.45])
    names = np.array(["0", "1"])[y.astype(int)]
    features = [("a", 0, 1), ("b", 0, 1)]
    task = Task(features, ("0", "1"), {"s": "public"}, release_, params)
    sent = [release(task, "s", X, names)]
    model = combine(task, sent, "s")
    assert model.servers[0].rate == pytest.approx(y.mean(), abs=1e-4)
    assert (model.predict(X) == names).mean() > 0.98
    assert (combine(task, sent, "s", decide="prior").predict(X) == names).mean() > 0.98


def test_counts_in_steps_have_no_more_noise_than_they_need() -> None:
    """At few grids and epsilon 8 a step of one record takes three times as much."""
    level = {"a": Level(8.0, 1e-4)}
    plain, fine = (
        Task([("a", 0, 1)], ("0", "1"), level, "cells", {"grids": 2} | more)
        for more in ({}, {"centring": "sums"})
    )
    sigma = []
    for task in (plain, fine):
        noise = release_noise(task, 100)
        assert noise is not None
        sigma.append(noise.sigma / form("cells").unit(task))
    exact = GaussianNoise(math.sqrt(2) * 2**40, 8.0, 1e-4).sigma / 2**40
    assert sigma[1] == pytest.approx(exact, rel=1e-3)
    assert sigma[0] > 3 * sigma[1]


ODD: list[Any] = [1, 2, 1e-9, 1e9, 64, 1e-300, 5e-324, 1e15, -1, 0, True, [0.0, 1.0]]
BOUNDS = [(0, 1e-300), (0, 5e-324), (-1e12, 1e12), (1e11, 1e11 + 1), (-1e308, 1e308)]
JUNK = [None, -1, 2**53, "", "x" * 5000, [], {}, [1], 1e308, "public", "own"]
SENT = [name for name in FORMS if not form(name).study]


def plain(name: str) -> dict[str, Any]:
    """Return a task as a steward writes it."""
    features: Any = [("age", 20, 90), ("chol", 100, 400)]
    task = Task(features, ("no", "yes"), {"a": 2.0, "b": 1.0}, name)  # type: ignore[arg-type]
    return task.to_json()


def bent(task: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return a task with odd parameters and bounds, and now and then with junk."""
    told = copy.deepcopy(task)
    for name in told["params"]:
        if rng.random() < 0.4:
            told["params"][name] = rng.choice(ODD)
    if rng.random() < 0.4:
        told["features"][0][1:] = rng.choice(BOUNDS)
    if rng.random() < 0.2:
        told[rng.choice(list(told))] = rng.choice(JUNK)
    return told


@pytest.mark.parametrize("name", SENT)
def test_a_bent_task_is_refused_or_hides_every_record(name: str) -> None:
    """No crash, and no two neighbours are further apart than the noise is made for."""
    rng, taken = random.Random(name), 0
    ages = [-1e308, 0.0, 1e-300, 50.0, 1e15, 1e308]
    X = np.array([[rng.choice(ages), rng.gauss(200, 80)] for _ in range(20)])
    y = np.arange(20.0) % 2
    other = X.copy(), y.copy()
    other[0][0], other[1][0] = [1e308, 100], 1 - y[0]
    for _ in range(150):
        try:
            task: Any = validate_task(bent(plain(name), rng), "a")
        except UserError:
            continue
        taken += 1
        message: Any = message_of(task)
        one, two = (message.sums(task, ClientData(x, x, c)) for x, c in ((X, y), other))
        apart = np.linalg.norm((one - two).astype(float))
        assert apart <= form(name).sensitivity(task) * (1 + 1e-12)
    assert taken > 3


SERVERS = {"here": Level(1.0), "there": Level(1.0)}
TABLES = [
    (np.zeros((40, 2)), np.repeat(["no", "yes"], 20)),
    (np.ones((40, 2)), np.repeat(["yes"], 40)),
]


class Hardware:
    """A source that is none of ours; it gives the same words whenever it is made."""

    def __init__(self) -> None:
        self._words = np.random.PCG64(7)
        self.given = 0

    def words(self, n: int) -> Words:
        """Return the next words, and count them."""
        self.given += n
        return np.asarray(self._words.random_raw(n), dtype=np.uint64)


def form_task(name: str) -> Task:
    """Return the task of some servers in one form."""
    features = (Feature("a", 0, 1), Feature("b", 0, 1))
    return Task(features, Classes(("no", "yes")), SERVERS, name)


def _noise(task: Task, server: str, which: int, seed: int) -> np.ndarray:
    records, labels = TABLES[which]
    sent = release(task, server, records, labels, SeededEntropy(seed))
    known = task.cube(records), task.codes(labels)
    sums = form(task.release).sums(task.for_server(server), *known)
    return np.asarray(sent.values - sums)


@pytest.mark.parametrize("name", ["cells", "moments", "kernel", "counts"])
def test_seeded_noise_depends_on_task_server_and_seed_alone(name: str) -> None:
    """Never on the records; and two servers share none."""
    task = form_task(name)
    first = _noise(task, "here", 0, 3)
    assert np.array_equal(first, _noise(task, "here", 1, 3))
    for other in (_noise(task, "there", 0, 3), _noise(task, "here", 0, 4)):
        assert not np.array_equal(first, other)


def test_any_other_source_is_taken_word_for_word() -> None:
    """What protects somebody is not turned into a seed of a few words."""
    task, (records, labels) = form_task("cells"), TABLES[0]
    source, twin = Hardware(), Hardware()
    sent = release(task, "here", records, labels, source)
    noise, asked = (
        release_noise(task.for_server("here"), len(records)),
        task.for_server("here"),
    )
    assert noise is not None
    sums = form("cells").sums(asked, task.cube(records), task.codes(labels))
    assert np.array_equal(sent.values, noise.add(sums, twin))
    assert source.given >= sent.values.size
