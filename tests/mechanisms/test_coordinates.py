"""The promises of every scalar mechanism on each coordinate of a record."""

import math
from itertools import product

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.mechanisms import per_coordinate
from curvote.mechanisms.base import ScalarMechanism
from tests.noise import SEED, Replay, build, names_of, probes


@pytest.fixture(params=names_of(ScalarMechanism))
def name(request) -> str:
    """Each scalar mechanism of the registry in turn."""
    return request.param


@pytest.mark.parametrize(("d", "epsilon"), [*product((1, 3, 7, 10), (0.1, 1, 10))])
def test_budget(name, d, epsilon):
    """All coordinates together lose at most epsilon, and nearly all of it if tight."""
    mechanism = per_coordinate(name, d, epsilon)
    worst = mechanism.worst_log_ratio()
    assert mechanism.epsilon == epsilon
    assert worst <= epsilon
    if mechanism.tight:
        assert worst >= epsilon - 1e-6
    low, high = (np.full((2000, d), end) for end in (mechanism.low, mechanism.high))
    given = mechanism.randomize(low, SeededEntropy(SEED))
    # Every coordinate of a row gives what one of them gave.
    loss = mechanism.log_ratio(low, high, np.repeat(given[:, :1], d, axis=1))
    assert loss.max() == pytest.approx(worst, abs=1e-9)


def test_is_the_scalar_mechanism_flattened(name):
    """A record's coordinates are the scalar mechanism's draws, row by row."""
    vector, scalar = per_coordinate(name, 4, 2), build(name, 0.5)
    values = np.resize(probes(scalar), (30, 4))
    rows = vector.randomize(values, SeededEntropy(SEED))
    flat = scalar.randomize(values.ravel(), SeededEntropy(SEED))
    assert (rows.ravel() == flat).all()
    assert vector.mean(values) == pytest.approx(scalar.mean(values))
    assert vector.variance(values) == pytest.approx(scalar.variance(values))
    assert vector.possible_mask(rows).all()
    assert (vector.unbiased, vector.tight) == (scalar.unbiased, scalar.tight)
    assert (vector.low, vector.high) == (scalar.low, scalar.high)


@pytest.mark.parametrize("shape", [(4,), (4, 2), (2, 3, 1), ()])
def test_shape(name, shape):
    """Anything but (n, d) is a UserError that draws nothing."""
    with pytest.raises(UserError, match=r"\(n, 3\)"):
        per_coordinate(name, 3, 1).randomize(np.ones(shape), Replay())


@pytest.mark.parametrize(("d", "epsilon"), [(0, 1), (2, 0), (2, math.nan), (9, 1e-6)])
def test_refuses(name, d, epsilon):
    """No coordinates, no budget, or too little of it for each: UserError."""
    with pytest.raises(UserError):
        per_coordinate(name, d, epsilon)
