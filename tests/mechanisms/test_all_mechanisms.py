"""What every mechanism of the registry promises, whatever it hides."""

import math

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy, SystemEntropy
from curvote.base.errors import UserError
from curvote.mechanisms import exact, make, names
from curvote.mechanisms.base import LabelMechanism, ScalarMechanism
from curvote.mechanisms.registry import MECHANISMS
from tests.noise import SEED, Replay, build, probes


@pytest.fixture(params=names())
def name(request) -> str:
    """Each mechanism of the registry in turn."""
    return request.param


def inputs(mechanism, n: int = 500) -> np.ndarray:
    """Return values, labels or records of n clients, of the whole domain."""
    if isinstance(mechanism, LabelMechanism):
        return np.arange(n) % mechanism.n_classes
    if isinstance(mechanism, ScalarMechanism):
        return np.resize(probes(mechanism), n)
    return np.random.default_rng(SEED).uniform(-1, 1, (n, mechanism.d))


def test_seed_reproduces_and_system_entropy_differs(name):
    """One seed gives one result; operating-system draws do not repeat.

    Randomizing does not write into the caller's array.
    """
    mechanism = build(name, 0.5)
    values = inputs(mechanism)
    before = values.copy()
    sources = [SeededEntropy(SEED), SeededEntropy(SEED), SeededEntropy(SEED + 1)]
    first, again, other = (mechanism.randomize(values, source) for source in sources)
    assert (first == again).all()
    assert (first != other).any()
    one, two = (mechanism.randomize(values, SystemEntropy()) for _ in range(2))
    assert np.isfinite(one).all()
    assert (one != two).any()
    assert (values == before).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_value_draws_nothing(name, bad):
    """NaN or infinity is a UserError before a single word is drawn."""
    mechanism = build(name, 1)
    values = inputs(mechanism, 5).astype(float)
    values[(3, 1)[: values.ndim]] = bad
    with pytest.raises(UserError, match=r"NaN or infinite|values"):
        mechanism.randomize(values, Replay())


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, -math.inf, 1e-9, 1e-300])
def test_epsilon_out_of_range(name, bad):
    """An epsilon that is no budget, or too small for the integers, is a UserError."""
    with pytest.raises(UserError, match="epsilon"):
        build(name, bad, **{"p": 0.5, "q": 0.25} if name == "unary" else {})


def test_claims(name):
    """The attributes that a ledger reads are there, and agree."""
    mechanism = build(name, 2)
    delta = 1e-6 if name == "gaussian" else 0
    assert (mechanism.name, mechanism.epsilon, mechanism.delta) == (name, 2.0, delta)
    if isinstance(mechanism, LabelMechanism) and mechanism.worst_ratio() is not None:
        assert exact.exact_log(mechanism.worst_ratio()) == mechanism.worst_log_ratio()


def test_unknown_names_and_parameters():
    """A misspelt mechanism or parameter is a UserError that names the close one."""
    with pytest.raises(UserError, match="Did you mean 'laplace'"):
        make("laplce", epsilon=1)
    with pytest.raises(UserError, match="parameter"):
        make("laplace", epsilon=1, scale=2)
    with pytest.raises(UserError, match="d is 0"):
        make("sampled", epsilon=1, d=0)
    assert names() == list(MECHANISMS)
