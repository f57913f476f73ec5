"""Form kernel: what one record moves, what is refused, and what the noise is."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.mechanisms.gaussian import GaussianNoise
from curvote.systems.transfer.method.features import QueryBatch, kernel_matrix
from curvote.systems.transfer.method.forms.kernel import ROUNDING_FACTOR, Kernel
from curvote.systems.transfer.method.release import release
from curvote.systems.transfer.method.task import Task, form

FEATURES = [("a", 0, 1)]
POINTS = np.array([0.0, 0.3, 1.0])
# Each kernel, how far apart features of norm 1 can be, and grids for a small table.
KERNELS = [("triangular", math.sqrt(2)), ("gaussian", 2), ("histogram", math.sqrt(2))]


def small_task(release="kernel", classes=("no", "yes"), **params):
    """Return a task of one feature with few cells."""
    params = {"bandwidths": [0.5, 0.25], "grids": 6, "cells": 300} | params
    return Task(FEATURES, classes, {"s": 1.0}, release=release, params=params)


def all_sums(task, n):
    """Return the sums of every table of n records at POINTS, by table."""
    records = list(itertools.product(range(len(POINTS)), (0, 1)))
    kernel = Kernel()
    for table in itertools.product(records, repeat=n):
        at, codes = np.array(table).T
        yield table, kernel.sums(task, POINTS[at, np.newaxis], codes)


def largest_move(task, n):
    """Return the largest distance of the sums of two tables that differ in one."""
    found = dict(all_sums(task, n))
    tables = np.array(list(found.values()), dtype=float)
    records = np.array(list(found)).reshape(len(found), n, 2)
    other = (records[:, np.newaxis] != records).any(axis=3).sum(axis=2)
    one, two = np.nonzero(other == 1)
    return np.sqrt(((tables[one] - tables[two]) ** 2).sum(axis=1).max())


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("centre", ["own", "half"])
@pytest.mark.parametrize(("kernel", "apart"), KERNELS)
def test_one_record_moves_no_more_than_is_said(kernel, apart, centre, n):
    """Every table of n records and every neighbour; the bounds are met."""
    task = small_task(kernel=kernel, centre=centre)
    one = Kernel().unit(task) * math.sqrt(2)  # two bandwidths, jointly
    moved = largest_move(task, n)
    stated = Kernel().sensitivity(task)
    assert moved <= stated
    assert stated <= one * (apart if centre == "own" else 1) + 1.01 * math.sqrt(300)
    if centre == "half":  # another label at the same point
        assert moved == pytest.approx(one, rel=1e-3)
    elif kernel != "gaussian":  # the one of its class goes where nobody is
        assert moved == pytest.approx(one * apart * (1 - 1 / n), rel=1e-3)


def test_the_own_rate_needs_the_root_of_two():
    """A sensitivity of 1, as published, is exceeded."""
    task = small_task(centre="own", bandwidths=[0.5])
    assert largest_move(task, 4) > 1.05 * Kernel().unit(task)


@pytest.mark.parametrize("kernel", ["triangular", "gaussian", "histogram", "jittered"])
def test_features_have_norm_one_at_each_bandwidth(kernel):
    """So is the inner product of a point with itself."""
    task = small_task(kernel=kernel)
    for each in Kernel().features(task):
        rows = np.array([each.counts(point[np.newaxis]) for point in POINTS[:, None]])
        assert (rows**2).sum(axis=1) == pytest.approx(each.count)
        own = each.product(POINTS[:, None], rows / math.sqrt(each.count))
        assert np.diag(own) == pytest.approx(1)


def test_queries_read_the_centred_sum_at_each_bandwidth():
    """Many grids give the triangular product kernel."""
    rng = np.random.default_rng(0)
    task = Task(
        [("a", 0, 1), ("b", 0, 1)],
        ("no", "yes"),
        {"s": 1.0},
        release="kernel",
        params={"bandwidths": [1.0, 0.5], "grids": 3000, "cells": 200_000},
    )
    X, codes, at = rng.random((40, 2)), rng.integers(0, 2, 40), rng.random((30, 2))
    values = Kernel().sums(task, X, codes).astype(float)
    told = Kernel().multiply_all(task, at, Kernel().weights(task, values))[:, :, 0]
    for row, width in zip(told, (1.0, 0.5), strict=True):
        near = np.maximum(1 - np.abs(at[:, None] - X) / width, 0).prod(axis=2)
        assert row == pytest.approx(near @ (codes - codes.mean()), abs=0.15)


def test_waves_have_a_gaussian_inner_product():
    """Many frequencies give the Gaussian kernel."""
    task = small_task(kernel="gaussian", grids=20_000, cells=10**5)
    wide = Kernel().features(task)[0]
    other = wide.counts(np.array([[0.3]]))[np.newaxis] / math.sqrt(wide.count)
    found = wide.product(POINTS[:, None], other)[:, 0]
    assert found == pytest.approx(np.exp(-(((POINTS - 0.3) / 0.5) ** 2) / 2), abs=0.02)


def test_a_release_stays_within_its_cells():
    """However many features and bandwidths there are."""
    for d, widths in itertools.product((1, 3, 9), ([1.0], [1.0, 0.5, 0.25, 0.125])):
        features = [(f"f{i}", 0, 1) for i in range(d)]
        params = {"bandwidths": widths, "grids": 50}
        task = Task(features, ("0", "1"), {"s": 1}, release="kernel", params=params)
        assert Kernel().length(task) <= 8192


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"bandwidths": [0.25, 0.5]}, "must fall"),
        ({"cells": 20}, "take 24 at least"),
        ({"classes": ("a", "b", "c")}, "two classes"),
        ({"bandwidths": []}, "bandwidths"),
        ({"centre": 0.3}, "centre"),
    ],
)
def test_what_does_not_fit_is_refused(given, said):
    """Each with its reason."""
    with pytest.raises(UserError, match=said):
        small_task(**given)


def test_the_task_survives_being_written():
    """Its parameters read back to the same digest."""
    task = small_task()
    assert Task.from_json(task.to_json()).digest() == task.digest()


def drawn(task, X, y, seed=1):
    """Return a seeded release."""
    return release(task, "s", X, y, SeededEntropy(seed))


def test_noise_knows_nothing_of_the_records():
    """The same seed adds the same to other tables."""
    task, X = small_task(), np.linspace(0, 1, 12)[:, np.newaxis]
    one, other = np.array(["no", "yes"] * 6), np.array(["yes"] * 3 + ["no"] * 9)
    noise = [
        drawn(task, X, y).values - Kernel().sums(task, X, (y == "yes").astype(int))
        for y in (one, other)
    ]
    assert (noise[0] == noise[1]).all()
    assert (drawn(task, X, one).values == drawn(task, X, one).values).all()


def test_the_printed_release_has_the_noise_of_equation_16():
    """And is marked as a study."""
    X, y = np.linspace(0, 1, 12)[:, np.newaxis], ["no", "yes"] * 6
    task = small_task(release="printed")
    made, unit = drawn(task, X, y), Kernel().unit(task)
    # Two bandwidths: epsilon / 2, and ln(2 |H| / delta) at delta = n^-2.
    printed = math.sqrt(2 * math.log(4 * 12**2)) * 2
    assert made.sigma == pytest.approx(unit * printed, rel=1e-6)
    assert made.budget.epsilon == 1.0
    assert form("printed").study
    assert not form("kernel").study


@pytest.mark.parametrize(("epsilon", "delivered"), [(2, 2.27), (5, 6.66), (10, 16.0)])
def test_as_published_a_release_delivers_less_privacy_than_it_says(epsilon, delivered):
    """Centred by the own rate, 142 records, one bandwidth: the papers' README, 4."""
    params = {"bandwidths": [1.0], "cells": 10**5}
    task = Task(FEATURES, ("a", "b"), {"s": epsilon}, release="printed", params=params)
    noise = form("printed").noise(task, task.cost(142))
    assert noise.worst_log_ratio() == pytest.approx(delivered, rel=0.02)
    right = form("kernel").noise(task, task.cost(142))
    assert right.worst_log_ratio() <= epsilon


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
