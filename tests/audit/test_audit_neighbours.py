"""What one record moves in a release about a table, and the delta that follows."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from curvote.mechanisms.gaussian import delta_bound, loss_deviation
from curvote.systems.transfer.audit import tables as gaussian_law
from curvote.systems.transfer.audit import tables as neighbours
from curvote.systems.transfer.messages import MESSAGES
from curvote.systems.transfer.method.task import Level, Task

SENT: Any = MESSAGES["release"]


def asked(form: str, d: int, classes: str, **params: Any) -> Task:
    """Return a task about d features in [0, 1]."""
    features: Any = [(f"x{i}", 0, 1) for i in range(d)]
    known: Any = tuple(classes)
    return Task(features, known, {"one": Level(1.0)}, form, params)


def moved(task: Task, message: Any = SENT) -> float:
    """Return the most that one record moves, in units of the stated sensitivity."""
    sizes = [n for n in neighbours.table_sizes(message, task) if n != 4]
    squares = [neighbours.worst_neighbours(message, task, n).square for n in sizes]
    return math.sqrt(max(squares)) / message.form(task).sensitivity(task)


def named(task: Task) -> str:
    """Return a task's name in the tests' report."""
    return f"{task.release}-{task.d}-{len(task.classes)}"


TIGHT = [
    asked("cells", d, classes, grids=20, order=order, pitch=pitch)
    for d, classes, order, pitch in ((1, "ab", 1, 0.4), (2, "abc", 2, 1.0))
]
TIGHT += [asked("cells", 3, "ab", grids=20, order=3, cells=120)]
TIGHT += [asked("moments", d, c) for d, c in ((1, "ab"), (3, "abc"))]
TIGHT += [asked("moments", 3, "ab", arm="joint", share=s) for s in (0.2, 0.6)]
TIGHT += [asked("counts", 2, "abc"), asked("kernel", 2, "ab", centre="half", grids=8)]
TIGHT += [asked("kernel", 2, "ab", bandwidths=[0.5, 0.2], grids=8, cells=1600)]
_WAVES: dict[str, Any] = {"kernel": "gaussian", "grids": 40, "cells": 80}
LOOSE = [asked("kernel", 2, "ab", centre=c, **_WAVES) for c in ("own", "half")]


@pytest.mark.parametrize("task", TIGHT, ids=named)
def test_no_neighbours_are_further_apart_than_stated_and_some_are_so_far(task):
    """Tables of 1, 2, 3 and 500 records, in whole numbers; one class only, too."""
    assert 0.99 < moved(task) <= 1 + 1e-12


@pytest.mark.parametrize("task", LOOSE, ids=named)
def test_waves_stay_within_what_is_stated(task: Task) -> None:
    """They are seldom opposed, so that the bound is not reached."""
    assert 0.2 < moved(task) <= 1


def test_every_table_of_few_records_is_among_those_searched() -> None:
    """Against all pairs of tables, written out: they differ in one record or none."""
    task = asked("moments", 1, "ab")
    records = neighbours.record_pool(task)
    tables = list(product(range(len(records.z)), repeat=2))
    sums = np.array([SENT.sums(task, records.subset(np.array(t))) for t in tables])
    pairs = np.array([[sum(np.array(a) != b) <= 1 for a in tables] for b in tables])
    apart = ((sums[:, None] - sums) ** 2).sum(axis=-1)
    assert neighbours.worst_neighbours(SENT, task, 2).square == apart[pairs].max()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("deviation", [0.2, 1.0, 4.0])
def test_delta_is_that_of_the_normal_law(epsilon: float, deviation: float) -> None:
    """By integration of max(0, p - e^epsilon q); its inverses give the same back."""
    found = gaussian_law.gaussian_delta(epsilon, deviation)
    x = np.linspace(-45, 45, 300_001)
    p, q = stats.norm.pdf(x, deviation), stats.norm.pdf(x)
    by_hand = np.trapezoid(np.maximum(p - np.exp(epsilon) * q, 0), x)
    assert found == pytest.approx(by_hand, rel=1e-5, abs=1e-13)
    if found > 1e-12:
        assert gaussian_law.largest_deviation(epsilon, found) == pytest.approx(
            deviation
        )
        assert gaussian_law.least_epsilon(deviation, found) == pytest.approx(epsilon)


@pytest.mark.parametrize("apart", [[3], [0, 2, -2], [5, 5, 5, 0]])
def test_the_discrete_delta_is_that_of_all_outcomes(apart: list[int]) -> None:
    """Against a sum over the grid, and below the bound that the product uses."""
    sigma, epsilon, steps = 16.5, 0.4, np.array(apart)
    found = gaussian_law.difference_delta(steps, sigma, epsilon)
    k = np.arange(-300, 301)
    one = np.exp(-(k**2) / (2 * sigma**2))
    law = np.array([1.0])
    for size in steps[steps != 0]:
        spread = np.zeros(abs(size) * 600 + 1)
        spread[:: abs(size)] = one / one.sum()
        law = np.convolve(law, spread)
    inner = np.arange(len(law)) - len(law) // 2
    loss = (2 * inner + steps @ steps) / (2 * sigma**2)
    assert found == pytest.approx(law @ np.maximum(0, 1 - np.exp(epsilon - loss)))
    bound = delta_bound(epsilon, loss_deviation(sigma, math.sqrt(steps @ steps)))
    assert found <= bound * (1 + 1e-9)
