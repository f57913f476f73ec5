"""OpenDP, an implementation of its own, draws from the same laws as curvote.

Each test compares two samples, once with both at the same parameters, where they must
agree, and once with OpenDP at 0.7 and 1.3 times them, where the same test must notice.
OpenDP's words come from the operating system, so a test fails by chance once in 10^6.
"""

import math

import numpy as np
import pytest
from scipy import stats

from curvote.base.entropy import SeededEntropy
from curvote.mechanisms import make
from curvote.mechanisms.exact import GRID_STEP, DiscreteLaplace
from curvote.mechanisms.gaussian import DiscreteGaussian
from curvote.mechanisms.laplace import RANGE_BITS
from tests.noise import ALPHA, SEED

dp = pytest.importorskip("opendp.prelude", reason="opendp is not installed")

N = 20_000
FACTORS = pytest.mark.parametrize(
    "factor", [1, 1.3, pytest.param(0.7, marks=pytest.mark.faults)]
)


@pytest.fixture(scope="module", autouse=True)
def _features():
    dp.enable_features("contrib")


def alike(first, second) -> bool:
    """Chi-square test of homogeneity on about 50 classes, by the pooled quantiles."""
    pooled = np.concatenate([first, second])
    edges = np.unique(np.quantile(pooled, np.linspace(0, 1, 51)[1:-1]))
    places = [np.searchsorted(edges, sample, side="left") for sample in (first, second)]
    table = np.array([np.bincount(place, minlength=edges.size + 1) for place in places])
    return stats.chi2_contingency(table[:, table.any(axis=0)]).pvalue > ALPHA


def cells(inputs, outputs, n_outputs):
    """Return one number for each pair of an input and an output."""
    return np.asarray(inputs) * n_outputs + np.asarray(outputs)


def noise(kind: str, scale: float):
    """Return OpenDP's ``laplace`` or ``gaussian`` on lists of integers."""
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if kind == "laplace":
        return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
    return dp.m.make_gaussian(domain, dp.l2_distance(T="i64"), scale=scale)


@FACTORS
@pytest.mark.parametrize(("s", "bits"), [(3, 0), (3, 2), (1, 5), (1 << 31, 52)])
def test_discrete_laplace(s, bits, factor):
    """The exact sampler and OpenDP's agree at scales from 1/3 to 2^21."""
    ours = DiscreteLaplace(s, bits).sample(N, SeededEntropy(SEED))
    theirs = noise("laplace", factor * 2**bits / s)([0] * N)
    assert alike(ours, theirs) == (factor == 1)


@FACTORS
@pytest.mark.parametrize(("epsilon", "x"), [(0.1, 1), (10, -0.5)])
def test_laplace_mechanism(epsilon, x, factor):
    """At the scale where OpenDP's own accounting says epsilon, the outputs agree."""
    mechanism, span = make("laplace", epsilon=epsilon), 1 << RANGE_BITS
    assert noise("laplace", span / epsilon).map(span) == pytest.approx(
        mechanism.worst_log_ratio(), rel=1e-6
    )
    ours = mechanism.randomize(np.full(N, x), SeededEntropy(SEED)) / GRID_STEP
    theirs = noise("laplace", factor * span / epsilon)([int(x / GRID_STEP)] * N)
    assert alike(ours, theirs) == (factor == 1)


@FACTORS
@pytest.mark.parametrize("sigma", [16.001, 90.5, 3e6])
def test_discrete_gaussian(sigma, factor):
    """The exact sampler and OpenDP's agree, also between two powers of two."""
    ours = DiscreteGaussian(0.5 / sigma**2).sample(N, SeededEntropy(SEED))
    theirs = noise("gaussian", factor * sigma)([0] * N)
    assert alike(ours, theirs) == (factor == 1)


@FACTORS
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (5, 1e-3)])
def test_gaussian_mechanism(epsilon, delta, factor):
    """At its sigma OpenDP states the mechanism's rho, and the outputs agree."""
    mechanism = make("gaussian", epsilon=epsilon, delta=delta, d=1)
    oracle, span = noise("gaussian", mechanism.sigma / GRID_STEP), 1 << RANGE_BITS
    assert oracle.map(span) == pytest.approx(mechanism.rho, rel=1e-9)
    ours = mechanism.randomize(np.ones((N, 1)), SeededEntropy(SEED))[:, 0] / GRID_STEP
    other = noise("gaussian", factor * mechanism.sigma / GRID_STEP)
    assert alike(ours, other([int(1 / GRID_STEP)] * N)) == (factor == 1)


@FACTORS
def test_binary_response(factor):
    """Randomized response keeps and flips both labels as often as OpenDP's does."""
    epsilon, labels = 2, np.arange(12_000) % 2
    mechanism = make("binary_rr", epsilon=epsilon)
    oracle = dp.m.make_randomized_response_bool(mechanism.keep)
    assert oracle.map(1) == pytest.approx(mechanism.worst_log_ratio(), rel=1e-12)
    other = dp.m.make_randomized_response_bool(1 / (1 + math.exp(-factor * epsilon)))
    ours = mechanism.randomize(2 * labels - 1, SeededEntropy(SEED)) > 0
    theirs = [other(label) for label in (labels == 1).tolist()]
    pairs = [cells(labels, outputs, 2) for outputs in (ours, theirs)]
    assert alike(*pairs) == (factor == 1)


@FACTORS
def test_k_ary_response(factor):
    """Every label goes to every label as often as OpenDP sends it there."""
    epsilon, k = 2, 4
    mechanism, labels = make("k_rr", epsilon=epsilon, n_classes=k), np.arange(8_000) % k

    def oracle(spent: float):
        kept = 1 / (1 + (k - 1) * math.exp(-spent))
        return dp.m.make_randomized_response(list(range(k)), kept)

    assert oracle(epsilon).map(1) == pytest.approx(mechanism.worst_log_ratio())
    other = oracle(factor * epsilon)
    ours = mechanism.randomize(labels, SeededEntropy(SEED))
    theirs = [other(label) for label in labels.tolist()]
    pairs = [cells(labels, outputs, k) for outputs in (ours, theirs)]
    assert alike(*pairs) == (factor == 1)


@FACTORS
def test_symmetric_unary_code(factor):
    """Its bits flip as those of OpenDP's bit vector (RAPPOR) at the same epsilon."""
    epsilon, k = 1, 16
    mechanism = make("unary_symmetric", epsilon=epsilon, n_classes=k)

    def oracle(spent: float, ones: int):
        replaced = 2 / (1 + math.exp(spent / 2))  # by a fair coin
        domain = dp.bitvector_domain(max_weight=ones)
        metric = dp.discrete_distance()
        return dp.m.make_randomized_response_bitvec(domain, metric, f=replaced)

    assert oracle(epsilon, 1).map(1) == pytest.approx(mechanism.worst_log_ratio())
    labels = np.arange(N) % k
    hot = np.eye(k, dtype=np.uint8)[labels]
    ours = mechanism.randomize(labels, SeededEntropy(SEED))
    released = oracle(factor * epsilon, N)(np.packbits(hot).tobytes())
    theirs = np.frombuffer(released, dtype=np.uint8)
    bits = [np.unpackbits(codes.ravel()) for codes in (ours, theirs)]
    pairs = [cells(hot.ravel(), each, 2) for each in bits]
    assert alike(*pairs) == (factor == 1)
