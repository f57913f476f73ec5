"""The promises of every mechanism, over the registry, and of the exact samplers."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from curvote.entropy import SeededEntropy, SystemEntropy
from curvote.errors import InternalError, UserError
from curvote.mechanisms import exact, laplace, make, names, per_coordinate, registry
from curvote.mechanisms.base import SMALLEST_EPSILON, FiniteMechanism, ScalarMechanism
from curvote.mechanisms.binary_rr import BinaryRR

EPSILONS = (0.01, 0.1, 0.5, 1, 2, 5, 10)
ALPHA = 1e-6
SEED = 7


class Replay:
    """Hands out the given words, in order; asking for more is a failure."""

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, n: int) -> np.ndarray:
        assert n <= len(self.left), "more words were drawn than expected"
        taken, self.left = self.left[:n], self.left[n:]
        return np.array(taken, dtype=np.uint64)


@pytest.fixture(params=names())
def name(request) -> str:
    """Each mechanism of the registry in turn."""
    return request.param


def accepted(mechanism, x) -> bool:
    """Say whether x is in the mechanism's domain or can be clipped into it."""
    try:
        mechanism.clip(x)
    except UserError:
        return False
    return True


def probes(mechanism) -> np.ndarray:
    """Inputs across the domain, its ends included, that the mechanism accepts."""
    grid = np.linspace(mechanism.low, mechanism.high, 9)
    return np.array([x for x in grid if accepted(mechanism, x)])


def some_outputs(mechanism) -> np.ndarray:
    """All outputs of a finite mechanism, or grid points inside the domain and out."""
    if isinstance(mechanism, FiniteMechanism):
        return mechanism.outputs
    return np.arange(-24, 25) / 8


def check_private(mechanism) -> None:
    """No input pair and no output loses more than epsilon; the worst is nearly it."""
    x, outputs = probes(mechanism), some_outputs(mechanism)
    worst = max(mechanism.log_ratio(*pair, outputs).max() for pair in product(x, x))
    assert mechanism.worst_log_ratio() <= mechanism.epsilon
    assert worst == pytest.approx(mechanism.worst_log_ratio(), abs=1e-9)
    assert mechanism.worst_log_ratio() >= mechanism.epsilon - 1e-6


def follows(draws: np.ndarray, law: ScalarMechanism, x: float) -> bool:
    """Say whether the draws' distribution function is the declared one, at ALPHA.

    The Dvoretzky-Kiefer-Wolfowitz inequality holds for laws with jumps too.
    """
    at, counts = np.unique(draws, return_counts=True)
    reached = np.cumsum(counts) / draws.size
    declared = law.cdf(x, at)
    below = law.cdf(x, np.nextafter(at, -np.inf))
    gap = max(
        np.abs(reached - declared).max(),
        np.abs(reached - counts / draws.size - below).max(),
    )
    return bool(gap <= math.sqrt(math.log(2 / ALPHA) / (2 * draws.size)))


def exp_oracle(x: Fraction) -> Fraction:
    """Return e^x for 0 <= x <= 3, too small by less than 2^-300, by its series."""
    term = total = Fraction(1)
    for k in range(1, 100):
        term *= x / k
        total += term
    return total


# ------------------------------------------------------------- every mechanism
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_privacy_loss(name, epsilon):
    """The loss of the integers really used is epsilon, or below it by 1e-6 at most."""
    check_private(make(name, epsilon=epsilon))


def test_halved_sensitivity_is_caught(monkeypatch):
    """A Laplace twin that takes the range of [-1, 1] for 1 fails the privacy check."""
    monkeypatch.setattr(laplace, "RANGE_BITS", laplace.GRID_BITS)
    twin = make("laplace", epsilon=1)
    assert twin.worst_log_ratio() == pytest.approx(2)
    with pytest.raises(AssertionError):
        check_private(twin)


@pytest.mark.parametrize("epsilon", [0.5, 2])
def test_mean_and_variance(name, epsilon):
    """Draws have the declared mean and variance; unbiased ones the input's mean."""
    mechanism, n = make(name, epsilon=epsilon), 40_000
    for x in probes(mechanism):
        draws = mechanism.randomize(np.full(n, x), SeededEntropy(SEED))
        variance = mechanism.variance(x)
        off = 6 * math.sqrt(variance / n)
        assert abs(draws.mean() - mechanism.mean(x)) < off
        fourth = np.mean((draws - draws.mean()) ** 4)
        assert abs(draws.var() - variance) < 6 * math.sqrt(fourth / n)
        if mechanism.unbiased:
            assert mechanism.mean(x) == pytest.approx(x, abs=2**-21)


@pytest.mark.parametrize("factor", [1, 0.7, 1.3])
def test_sampling_law(name, factor):
    """Draws follow the declared law at the claimed scale, and at no other."""
    mechanism = make(name, epsilon=1)
    for x in probes(mechanism):
        draws = mechanism.randomize(np.full(50_000, x), SeededEntropy(SEED))
        law = make(name, epsilon=factor)
        assert follows(draws, law, x) == (factor == 1)


@pytest.mark.parametrize("epsilon", [0.1, 5, 100])
def test_sampling_law_far_from_1(name, epsilon):
    """The law holds where the grid is fine and where it is coarse for the noise."""
    mechanism = make(name, epsilon=epsilon)
    for x in probes(mechanism)[[0, -1]]:
        draws = mechanism.randomize(np.full(20_000, x), SeededEntropy(SEED))
        assert follows(draws, mechanism, x)


def test_probabilities_are_a_channel(name):
    """A finite channel's rows are non-negative and sum to 1."""
    mechanism = make(name, epsilon=1)
    if isinstance(mechanism, FiniteMechanism):
        rows = mechanism.probabilities(probes(mechanism))
        assert rows.shape[-1] == mechanism.outputs.size
        assert (rows >= 0).all()
        assert np.allclose(rows.sum(axis=-1), 1, rtol=0, atol=1e-15)


def test_cdf_is_a_distribution_function(name):
    """The declared law rises from 0 to 1."""
    mechanism = make(name, epsilon=1)
    for x in probes(mechanism):
        values = mechanism.cdf(x, np.concatenate([[-1e9], np.linspace(-9, 9), [1e9]]))
        assert values[0] == pytest.approx(0, abs=1e-12)
        assert values[-1] == pytest.approx(1, abs=1e-12)
        assert (np.diff(values) >= 0).all()


def test_seed_reproduces_and_system_entropy_differs(name):
    """One seed gives one result; operating-system draws do not repeat."""
    mechanism = make(name, epsilon=0.5)
    values = np.resize(probes(mechanism), 1000)
    sources = [SeededEntropy(SEED), SeededEntropy(SEED), SeededEntropy(SEED + 1)]
    first, again, other = (mechanism.randomize(values, source) for source in sources)
    assert (first == again).all()
    assert (first != other).any()
    system = SystemEntropy()
    one, two = (mechanism.randomize(values, system) for _ in range(2))
    assert np.isfinite(one).all()
    assert (one != two).any()


@pytest.mark.parametrize("shape", [(0,), (1,), (5,), (0, 3), (4, 3), (2, 3, 2), ()])
def test_shape(name, shape):
    """The output is float64 of the input's shape, empty ones too."""
    mechanism = make(name, epsilon=1)
    values = np.full(shape, probes(mechanism)[0])
    out = mechanism.randomize(values, SeededEntropy(SEED))
    assert out.shape == shape
    assert out.dtype == np.float64


def test_input_is_left_alone(name):
    """Randomizing does not write into the caller's array."""
    mechanism = make(name, epsilon=1)
    values = np.resize(probes(mechanism), 100)
    before = values.copy()
    mechanism.randomize(values, SeededEntropy(SEED))
    assert (values == before).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_value_draws_nothing(name, bad):
    """NaN or infinity is a UserError before a single word is drawn."""
    values = np.ones(5)
    values[3] = bad
    with pytest.raises(UserError, match="NaN or infinite"):
        make(name, epsilon=1).randomize(values, Replay())


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, -math.inf, 1e-9, 1e-300])
def test_epsilon_out_of_range(name, bad):
    """An epsilon that is no budget, or too small for the integers, is a UserError."""
    with pytest.raises(UserError, match="epsilon"):
        make(name, epsilon=bad)


@pytest.mark.parametrize("epsilon", [SMALLEST_EPSILON, 100, 1e4, 1e9, 1e15, 1e300])
def test_extreme_epsilon(name, epsilon):
    """From the smallest epsilon to absurd ones the loss stays below the claim."""
    mechanism = make(name, epsilon=epsilon)
    assert 0.99 * min(epsilon, 44) <= mechanism.worst_log_ratio() <= epsilon
    values = probes(mechanism)
    out = mechanism.randomize(values, SeededEntropy(SEED))
    assert np.isfinite(out).all()
    if epsilon > 1e9:
        assert out == pytest.approx(values, abs=2**-20)


def test_claims(name):
    """The attributes that a ledger reads are there."""
    mechanism = make(name, epsilon=2)
    assert (mechanism.name, mechanism.epsilon, mechanism.delta) == (name, 2.0, 0.0)


def test_unknown_names_and_parameters():
    """A misspelt mechanism or parameter is a UserError that names the close one."""
    with pytest.raises(UserError, match="Did you mean 'laplace'"):
        make("laplce", epsilon=1)
    with pytest.raises(UserError, match="parameter"):
        make("laplace", epsilon=1, scale=2)
    assert names() == list(registry.MECHANISMS)


# --------------------------------------------------------------------- laplace
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_laplace_outputs_lie_on_the_grid(epsilon):
    """Whatever the input's low bits, the output is a multiple of 2^-20."""
    values = np.random.default_rng(SEED).uniform(-1, 1, 2000)
    out = make("laplace", epsilon=epsilon).randomize(values, SeededEntropy(SEED))
    assert (out * 2**20 == np.rint(out * 2**20)).all()


def test_laplace_clips_and_counts():
    """Values out of [-1, 1] are clipped, counted, and noised like the end point."""
    mechanism = make("laplace", epsilon=1)
    clipped, count = mechanism.clip([-3, -1, 0.5, 1, 1.0001])
    assert clipped.tolist() == [-1, -1, 0.5, 1, 1]
    assert count == 2
    far, end = (mechanism.randomize([x], SeededEntropy(SEED)) for x in (40, 1))
    assert far == end


def test_laplace_rounds_halves_to_even():
    """The declared mean is the grid point, halves going to the even one."""
    mechanism = make("laplace", epsilon=1)
    halves = np.array([0.5, 1.5, 2.5, -0.5]) * 2**-20
    assert (mechanism.mean(halves) == np.array([0, 2, 2, 0]) * 2**-20).all()


@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
def test_laplace_is_near_its_continuous_law(epsilon):
    """The law is that of the continuous Laplace of scale 2/epsilon, up to the grid."""
    mechanism, at = make("laplace", epsilon=epsilon), np.linspace(-9, 9, 99)
    expected = stats.laplace(loc=0.25, scale=2 / epsilon).cdf(at)
    assert mechanism.cdf(0.25, at) == pytest.approx(expected, abs=epsilon * 2**-19)
    assert mechanism.variance(0.25) == pytest.approx(8 / epsilon**2, rel=1e-6)


@pytest.mark.parametrize("epsilon", [SMALLEST_EPSILON, 0.1, 10, 1e4, 1e300])
def test_laplace_cuts_off_inside_the_exact_noise(epsilon):
    """Noise cut for want of bits gives one and the same output for every input."""
    mechanism = make("laplace", epsilon=epsilon)
    cut = mechanism.noise.exact_below
    assert 0 < mechanism.limit <= 2**53
    for noise, x in product((cut, -cut), (-1, 0, 1)):
        mechanism.noise = type("Cut", (), {"sample": lambda *_, k=noise: np.array(k)})
        out = mechanism.randomize(x, Replay())
        assert out == math.copysign(mechanism.limit * 2**-20, noise)


# ------------------------------------------------------------------- binary_rr
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1, 2, 3])
def test_binary_rr_threshold_is_the_exact_floor(epsilon):
    """The kept share is floor(2^64 e^eps/(1+e^eps)) / 2^64, by a rational oracle."""
    power = exp_oracle(Fraction(epsilon))
    mechanism = make("binary_rr", epsilon=epsilon)
    assert mechanism.threshold == math.floor(2**64 * power / (1 + power))
    assert mechanism.flip_threshold + mechanism.threshold == 2**64
    assert mechanism.keep == pytest.approx(1 / (1 + math.exp(-epsilon)), rel=1e-15)


def test_binary_rr_keeps_just_below_the_threshold():
    """A label is kept for the word below the threshold and flipped for the next."""
    mechanism = make("binary_rr", epsilon=1)
    words = Replay(mechanism.threshold - 1, mechanism.threshold)
    assert mechanism.randomize([1, 1], words).tolist() == [1, -1]


def test_binary_rr_mean_is_shrunk():
    """The mean is (2q - 1) x and the variance 1 - (2q - 1)^2."""
    mechanism = make("binary_rr", epsilon=2)
    shrink = 2 * mechanism.keep - 1
    assert mechanism.mean([-1, 1]) == pytest.approx([-shrink, shrink])
    assert mechanism.variance(1) == pytest.approx(1 - shrink**2)


@pytest.mark.parametrize("bad", [[0, 1], [2], [0.999]])
def test_binary_rr_refuses_what_is_no_label(bad):
    """Anything but -1 and +1 is a UserError that shows the value."""
    with pytest.raises(UserError, match="labels are -1 or"):
        make("binary_rr", epsilon=1).randomize(bad, Replay())


# -------------------------------------------------------------- per coordinate
@pytest.mark.parametrize(("d", "epsilon"), [*product((1, 3, 7, 10), (0.1, 1, 10))])
def test_per_coordinate_budget(name, d, epsilon):
    """All coordinates together lose at most epsilon, and nearly all of it."""
    mechanism = per_coordinate(name, d, epsilon)
    assert mechanism.epsilon == epsilon
    assert epsilon - 1e-6 <= mechanism.worst_log_ratio() <= epsilon
    low, high = np.full((1, d), mechanism.low), np.full((1, d), mechanism.high)
    loss = mechanism.log_ratio(low, high, low)
    assert loss == pytest.approx([mechanism.worst_log_ratio()], abs=1e-9)


def test_per_coordinate_is_the_scalar_mechanism_flattened(name):
    """A record's coordinates are the scalar mechanism's draws, row by row."""
    vector, scalar = per_coordinate(name, 4, 2), make(name, epsilon=0.5)
    values = np.resize(probes(scalar), (30, 4))
    rows = vector.randomize(values, SeededEntropy(SEED))
    flat = scalar.randomize(values.ravel(), SeededEntropy(SEED))
    assert (rows.ravel() == flat).all()
    assert vector.mean(values) == pytest.approx(scalar.mean(values))
    assert vector.variance(values) == pytest.approx(scalar.variance(values))
    assert vector.unbiased == scalar.unbiased


@pytest.mark.parametrize("shape", [(4,), (4, 2), (2, 3, 1), ()])
def test_per_coordinate_shape(name, shape):
    """Anything but (n, d) is a UserError that draws nothing."""
    with pytest.raises(UserError, match=r"\(n, 3\)"):
        per_coordinate(name, 3, 1).randomize(np.ones(shape), Replay())


@pytest.mark.parametrize(("d", "epsilon"), [(0, 1), (2, 0), (2, math.nan), (9, 1e-6)])
def test_per_coordinate_refuses(name, d, epsilon):
    """No coordinates, no budget, or too little of it for each: UserError."""
    with pytest.raises(UserError):
        per_coordinate(name, d, epsilon)


# -------------------------------------------------------------- exact samplers
@given(
    numerator=st.integers(0, 3 << 52),
    bits=st.sampled_from([64, 128, 256]),
)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_exp_bounds_enclose(numerator, bits):
    """The integer bounds enclose 2^bits e^-x, three units apart at most."""
    low, high = exact.exp_bounds(numerator, 1 << 52, bits)
    power = exp_oracle(Fraction(numerator, 1 << 52))
    assert low * power <= 2**bits <= high * (power + Fraction(1, 2**300))
    assert high - low <= 3


def test_exp_bounds_of_tiny_powers():
    """Powers below one unit are enclosed by 0 and a small integer."""
    assert exact.exp_bounds(10**9, 1, 64) == (0, 1)
    low, high = exact.exp_bounds(60, 1, 64)
    assert low == 0 < high <= 2


def exp_prefix(u: int, bits: int, width: int) -> int:
    """Return the first ``width`` bits of exp(-u / 2^bits)."""
    return math.floor(2**width / exp_oracle(Fraction(u, 1 << bits)))


@pytest.mark.parametrize("margin", [exact.MARGIN, 1.0])
@pytest.mark.parametrize("bits", [1, 3, 5])
def test_below_exp_at_its_bounds(bits, margin, monkeypatch):
    """Words next to the bound are decided as rational arithmetic decides them."""
    monkeypatch.setattr(exact, "MARGIN", margin)
    u = np.arange(1, 1 << bits)
    at = np.array([exp_prefix(k, bits, 64) for k in u.tolist()], dtype=np.uint64)
    entropy = SeededEntropy(SEED)
    for step in (1, 5, 1 << 15, 1 << 40):
        assert exact.below_exp(at - np.uint64(step), u, bits, entropy).all()
        assert not exact.below_exp(at + np.uint64(step), u, bits, entropy).any()


@pytest.mark.parametrize(("offset", "below"), [(-9, True), (9, False)])
def test_undecided_words_draw_more_bits(offset, below):
    """A word that equals the bound's first 64 bits is settled by the next one."""
    first, second = divmod(exp_prefix(3, 3, 128) + offset, 1 << 64)
    u, entropy = np.array([3]), Replay(second)
    words = np.array([first], dtype=np.uint64)
    assert exact.below_exp(words, u, 3, entropy).tolist() == [below]
    assert not entropy.left


def test_geometric_at_its_bounds():
    """V steps down where the word passes floor(e^-k 2^64); ties draw more bits."""
    for k in (1, 2, 3):
        bound = exp_prefix(k, 0, 64)
        words = np.array([bound - 1, bound + 1], dtype=np.uint64)
        assert exact.geometric(words, 99, Replay()).tolist() == [k, k - 1]
        for fresh, v in ((0, k), (2**64 - 1, k - 1)):
            tie = np.array([bound], dtype=np.uint64)
            assert exact.geometric(tie, 99, Replay(fresh)).tolist() == [v]


def test_geometric_of_zeros_ends():
    """Even an endless run of zero bits ends, at the stated largest V."""
    zeros = np.zeros(1, dtype=np.uint64)
    assert exact.geometric(zeros, 70, Replay(0, 0, 0)).tolist() == [70]


def test_geometric_filter_is_the_exact_path():
    """The table lookup and exact arithmetic give the same V for the same words."""
    words = SeededEntropy(SEED).words(400) >> np.repeat(np.uint64([0, 20]), 200)
    table = exact.geometric(words, 99, Replay())
    slow = [exact.geometric_exact(word, 99, Replay()) for word in words.tolist()]
    assert table.tolist() == slow
    assert max(slow) > 12


@pytest.mark.parametrize("bits", [0, 4, 52])
def test_laplace_filter_is_the_exact_path(bits, monkeypatch):
    """With the margin at 1 every comparison is exact, and every draw the same."""
    law = exact.DiscreteLaplace(3, bits)
    fast = law.sample(1500, SeededEntropy(SEED))
    monkeypatch.setattr(exact, "MARGIN", 1.0)
    assert (law.sample(1500, SeededEntropy(SEED)) == fast).all()


@pytest.mark.parametrize(("s", "bits"), [(1, 1), (1, 2), (3, 2), (5, 2), (3, 3)])
def test_discrete_laplace_channel_by_enumeration(s, bits):
    """Every (U, sign, V) has its place, and the sum of their masses is the law."""
    vs = range(40)
    cases = list(product(range(1 << bits), (0, 1), vs))
    powers = [math.exp(-v) * 2**64 for v in range(41)]
    between = [int((powers[v] + powers[v + 1]) / 2) for v in vs]
    uniform = [u << (64 - bits) | sign for u, sign, _ in cases]
    replay = Replay(*uniform, *[0] * len(cases), *[between[v] for _, _, v in cases])
    signed = [(-1) ** sign * ((u + (v << bits)) // s) for u, sign, v in cases]
    placed = [(k, c) for k, c in zip(signed, cases, strict=True) if k or not c[1]]
    drawn = exact.DiscreteLaplace(s, bits)._attempt(len(cases), replay)
    assert drawn.tolist() == [k for k, _ in placed]
    mass: dict[int, float] = dict.fromkeys(range(-9, 10), 0.0)
    for k, (u, _, v) in placed:
        mass[k] = mass.get(k, 0) + math.exp(-u / 2**bits - v)
    total, g = sum(mass.values()), s / 2**bits
    for k in range(-9, 10):
        law = math.tanh(g / 2) * math.exp(-g * abs(k))
        assert mass[k] / total == pytest.approx(law, rel=1e-9)


@pytest.mark.parametrize(("s", "bits"), [(1, 0), (1, 1), (3, 2), (5, 4), (1 << 51, 52)])
def test_discrete_laplace_chi_square(s, bits):
    """Draws at small t have the closed form's frequencies, and not those of 0.7 s/t."""
    law, n, edge = exact.DiscreteLaplace(s, bits), 60_000, 6
    draws = np.clip(law.sample(n, SeededEntropy(SEED)), -edge, edge)
    counts = np.array([(draws == k).sum() for k in range(-edge, edge + 1)])
    critical = stats.chi2.isf(ALPHA, 2 * edge)
    for rate, fits in ((law.rate, True), (0.7 * law.rate, False)):
        k = np.arange(-edge, edge + 1)
        p = np.tanh(rate / 2) * np.exp(-rate * np.abs(k))
        p[[0, -1]] = np.exp(-rate * edge) / (1 + np.exp(-rate))
        statistic = np.sum((counts - n * p) ** 2 / (n * p))
        assert (statistic < critical) == fits


def test_discrete_laplace_cdf_and_variance():
    """The declared law is the sum of the closed form's masses."""
    law, k = exact.DiscreteLaplace(3, 2), np.arange(-80, 81)
    mass = np.tanh(law.rate / 2) * np.exp(-law.rate * np.abs(k))
    assert law.cdf(k) == pytest.approx(np.cumsum(mass), abs=1e-14)
    assert law.cdf([-np.inf, 0.5, np.inf]) == pytest.approx([0, float(law.cdf(0)), 1])
    assert law.variance == pytest.approx(np.sum(mass * k**2))


def test_any_number_of_draws():
    """The chunks fill exactly what was asked for, none at all included."""
    law = exact.DiscreteLaplace(1, 2)
    for n in (0, 1, 10_000, 40_000):
        assert law.sample(n, SeededEntropy(SEED)).shape == (n,)


@pytest.mark.parametrize(("s", "bits"), [(0, 52), (1, 53), (1 << 63, 52), (1, -1)])
def test_discrete_laplace_refuses_what_overflows(s, bits):
    """Integers that 64 bits cannot hold are an error of ours."""
    with pytest.raises(InternalError):
        exact.DiscreteLaplace(s, bits)


def test_log_odds_never_exceed_a_bound():
    """The loss of a threshold rounded towards privacy is at most epsilon, as floats."""
    for epsilon in np.random.default_rng(SEED).uniform(0.001, 45, 300).tolist():
        assert BinaryRR(epsilon=epsilon).worst_log_ratio() <= epsilon
