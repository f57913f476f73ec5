"""Form kernel: what one record moves, what is refused, and what the noise is."""

import itertools
import math

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.systems.transfer.method.forms.kernel import Kernel
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
