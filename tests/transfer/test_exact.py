"""The exact process on a batch: its noise, and what the binning release makes of it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.mechanisms.gaussian import GaussianNoise
from curvote.systems.transfer.method.features import QueryBatch, kernel_matrix
from curvote.systems.transfer.method.forms.kernel import ROUNDING_FACTOR, Kernel
from curvote.systems.transfer.method.release import release
from curvote.systems.transfer.method.task import Task


def a_task(**params):
    """Return a task for one server."""
    params = {"bandwidths": [0.5], "centre": "half", "grids": 100} | params
    return Task(
        [("a", 0, 1), ("b", 0, 1)],
        ("no", "yes"),
        {"s": 0.7},
        release="kernel",
        params=params,
    )


UNIT = 1 << 20


def release_process(task, table, points, entropy):
    """Return the exact release of one table, (|H|, q), and its variance."""
    p, (X, y) = task.params, table
    cube, queries, ill = task.cube(X), task.cube(points), task.codes(y) == 1
    batches = [QueryBatch(p["kernel"], queries, h / p["span"]) for h in p["bandwidths"]]
    coordinates = [batch.coordinates(cube, ill - 0.5) for batch in batches]
    budget, ends = task.cost(len(cube)), np.cumsum([len(part) for part in coordinates])
    reach = UNIT * math.sqrt(len(batches)) + ROUNDING_FACTOR * math.sqrt(ends[-1])
    noise = GaussianNoise(reach, budget.epsilon, budget.delta)
    steps = np.rint(np.concatenate(coordinates) * UNIT).astype(np.int64)
    parts = np.split(noise.add(steps, entropy) / (UNIT * len(cube)), ends[:-1])
    values = [batch.basis @ part for batch, part in zip(batches, parts, strict=True)]
    return np.stack(values), (noise.sigma / (UNIT * len(cube))) ** 2


def simulated(seed, n=300):
    """Return records of two classes on a board of four squares."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    ill = (X[:, 0] > 0.5) == (X[:, 1] > 0.5)
    return X, np.where(ill ^ (rng.random(n) < 0.2), "yes", "no")


@pytest.mark.parametrize("kernel", ["triangular", "gaussian"])
def test_coordinates_hold_the_process_and_one_record_moves_them_little(kernel):
    """The coordinates give the kernel sums back and are no longer than features."""
    rng, width = np.random.default_rng(0), 0.4
    batch, cube = rng.random((25, 2)), rng.random((8, 2))
    near, made = (
        kernel_matrix(kernel, batch, cube, width),
        QueryBatch(kernel, batch, width),
    )
    for _ in range(200):
        moved = np.zeros(8)
        moved[rng.integers(8)] += 1  # one record's features, and less another's
        moved[rng.integers(8)] -= 1
        found = made.coordinates(cube, moved)
        assert made.basis @ found == pytest.approx(near @ moved, abs=1e-4)
        assert (found**2).sum() <= 2 + 1e-9


def test_the_noise_has_the_kernel_as_covariance():
    """Near points have correlated noise around the true sum."""
    task, points = a_task(), np.array([[0.2, 0.2], [0.3, 0.25], [0.9, 0.9]])
    table = simulated(1, n=20)
    seen = [release_process(task, table, points, SeededEntropy(s)) for s in range(400)]
    told = np.array([values[0] for values, _ in seen])
    covariance = np.cov(told.T) / seen[0][1]
    expected = kernel_matrix("triangular", points, points, 0.5)
    assert covariance == pytest.approx(expected, abs=0.2)
    truth = kernel_matrix("triangular", points, table[0], 0.5) @ (
        (table[1] == "yes") - 0.5
    )
    spread = math.sqrt(seen[0][1] / 400)
    assert told.mean(axis=0) == pytest.approx(truth / 20, abs=5 * spread)


def test_binning_is_as_accurate_as_the_exact_process():
    """The same accuracy at the same budget, grids drawn anew each time."""
    queries = np.random.default_rng(2).random((200, 2))
    ill = (queries[:, 0] > 0.5) == (queries[:, 1] > 0.5)
    right = {"exact": [], "binned": []}
    for seed in range(60):
        table, task = simulated(seed), replace(a_task(), seed=seed)
        values, _ = release_process(task, table, queries, SeededEntropy(seed))
        right["exact"].append(((values[0] > 0) == ill).mean())
        made = release(task, "s", *table, SeededEntropy(seed))
        rows = Kernel().weights(task, made.values.astype(float))
        binned = Kernel().product(task, queries, rows)[:, 0]
        right["binned"].append(((binned > 0) == ill).mean())
    means = {name: np.mean(found) for name, found in right.items()}
    assert 0.7 < means["exact"] < 0.98
    assert means["binned"] == pytest.approx(means["exact"], abs=0.025)


def test_the_noise_of_both_is_the_same():
    """A query of the binning release has the exact one's variance."""
    task, table = a_task(grids=50), simulated(0)
    _, variance = release_process(task, table, table[0][:30], SeededEntropy(0))
    made = release(task, "s", *table, SeededEntropy(0))
    sigma = made.sigma / Kernel().unit(task) / made.n
    assert math.sqrt(variance) == pytest.approx(sigma, rel=0.01)


def test_bandwidths_are_released_jointly():
    """Four bandwidths cost twice the deviation."""
    one = release_process(a_task(), simulated(0), [[0.5, 0.5]], SeededEntropy(0))
    four = a_task(bandwidths=[1.0, 0.5, 0.25, 0.125], grids=50)
    values, variance = release_process(
        four, simulated(0), [[0.5, 0.5]], SeededEntropy(0)
    )
    assert values.shape == (4, 1)
    assert variance == pytest.approx(4 * one[1], rel=1e-3)
