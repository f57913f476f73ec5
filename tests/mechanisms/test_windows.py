"""The piecewise family: its integers, and what the papers say of each member."""

import math
from fractions import Fraction

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.mechanisms import make
from curvote.mechanisms.base import SMALLEST_EPSILON
from curvote.mechanisms.piecewise import Window, WindowMechanism
from tests.noise import EPSILONS, SEED, Replay, exp_oracle, names_of

TINY = Window(epsilon=0.7, first=-3, last=7, half=2)
CENTRES = np.arange(-3, 8)
OUTSIDE_WORD = 2**64 - 1

every_window = pytest.mark.parametrize("name", names_of(WindowMechanism))


def channel(window: Window) -> list[list[Fraction]]:
    """The law by its definition: a row a centre, a column a point."""
    inside = Fraction(window.threshold, 2**64 * window.width)
    rest = Fraction(2**64 - window.threshold, 2**64 * (window.size - window.width))
    points = np.arange(window.first, window.last + 1)
    held = window.holds(CENTRES[:, None], points)
    return [[inside if context else rest for context in row] for row in held]


def test_channel_of_a_tiny_window():
    """Rows are laws, the worst ratio is the stated one and at most e^epsilon."""
    rows = channel(TINY)
    assert {sum(row) for row in rows} == {1}
    worst = max(max(column) / min(column) for column in zip(*rows, strict=True))
    assert worst == TINY.ratio
    assert (
        worst <= exp_oracle(Fraction(TINY.epsilon)) < worst * (1 + Fraction(1, 2**60))
    )


def test_stated_moments_and_cdf_of_a_tiny_window():
    """Mean, variance and distribution function are those of the channel."""
    rows = np.array(channel(TINY), dtype=float)
    points = np.arange(TINY.first, TINY.last + 1)
    mean = rows @ points
    assert TINY.mean(CENTRES) == pytest.approx(mean)
    assert TINY.variance(CENTRES) == pytest.approx(rows @ points**2 - mean**2)
    stated = TINY.cdf(CENTRES[:, None], points.astype(float))
    assert stated == pytest.approx(rows.cumsum(axis=1))
    assert (TINY.cdf(CENTRES, np.float64(-4)) == 0).all()


@pytest.mark.parametrize("centre", CENTRES)
def test_every_word_leads_to_its_point(centre):
    """Words below the threshold and the others each reach their own points, once."""
    counts = {TINY.threshold - 1: TINY.width, TINY.threshold: TINY.size - TINY.width}
    drawn = [
        {int(TINY.sample(np.array([centre]), Replay(word, k))[0]) for k in range(n)}
        for word, n in counts.items()
    ]
    held = TINY.holds(np.array(centre), CENTRES)
    assert drawn == [set(CENTRES[held]), set(CENTRES[~held])]


@every_window
@pytest.mark.parametrize("epsilon", [SMALLEST_EPSILON, *EPSILONS, 40, 1e300])
def test_window_has_one_size_for_every_input(name, epsilon):
    """The window lies in the range for every input, its width is never cut."""
    mechanism = make(name, epsilon=epsilon)
    window, ends = mechanism.window, mechanism._window_centres([-9, 9])
    lowest, highest = window.window_middles(ends)
    assert window.width < window.size
    assert lowest < highest
    assert lowest - window.half == window.first
    assert highest + window.half == window.last


@every_window
def test_every_output_is_possible_for_every_input(name):
    """The first and the last point are reached from both ends of the domain."""
    mechanism = make(name, epsilon=1)
    window = mechanism.window
    ends = {window.first * mechanism.scale, window.last * mechanism.scale}
    for x in (mechanism.low, mechanism.high):
        reached = set()
        for k in range(2):
            last_out, last_in = window.size - window.width - 1, window.width - 1
            reached |= set(mechanism.randomize([x], Replay(0, k * last_in)).tolist())
            words = Replay(OUTSIDE_WORD, k * last_out)
            reached |= set(mechanism.randomize([x], words).tolist())
        assert ends <= reached


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("x", [0, 0.3, -1])
def test_piecewise_variance_is_the_papers(epsilon, x):
    """Wang et al. (2019), lemma 1: the variance, and the range [-C, C]."""
    mechanism, root = make("piecewise", epsilon=epsilon), math.exp(epsilon / 2)
    variance = x**2 / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
    assert mechanism.variance(x) == pytest.approx(variance, rel=1e-4)
    largest = (root + 1) / (root - 1)
    assert mechanism.window.last * mechanism.scale == pytest.approx(largest, rel=1e-4)


def test_piecewise_is_exactly_unbiased():
    """The window's share of the mean times the step is one grid step, as a fraction."""
    for epsilon in EPSILONS:
        window = make("piecewise", epsilon=epsilon).window
        above = window.threshold * window.size - window.width * 2**64
        lift = Fraction(above, (window.size - window.width) * 2**64)
        assert window.first == -window.last
        step = Fraction(make("piecewise", epsilon=epsilon).scale)
        assert abs(lift * step * 2**20 - 1) < Fraction(1, 2**51)


def step_cdf(at, low, high, width, ratio, x):
    """The law on [low, high] that is ``ratio`` times denser in a window around x."""
    left = np.clip(x - width / 2, low, high - width)
    base = 1 / (high - low + (ratio - 1) * width)
    return base * (at - low + (ratio - 1) * np.clip(at - left, 0, width))


@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
@pytest.mark.parametrize("x", [-1, -0.2, 0.7, 1])
def test_square_wave_is_the_papers(epsilon, x):
    """Li et al. (2020): v = (x + 1)/2 in [0, 1], e^epsilon times denser within b."""
    mechanism, e = make("square_wave", epsilon=epsilon), math.exp(epsilon)
    b = (epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon))
    at = np.linspace(-b, 1 + b, 99)
    expected = step_cdf(at, -b, 1 + b, 2 * b, e, (x + 1) / 2)
    assert mechanism.cdf(x, at) == pytest.approx(expected, abs=e * 2e-6)
    assert not mechanism.possible_mask(np.array([-b - 1e-6, 1 + b + 1e-6])).any()


@pytest.mark.parametrize("epsilon", [0.1, 1, 2, 5])
@pytest.mark.parametrize("x", [0, 0.05, 0.5, 0.97, 1])
def test_unit_versions_are_the_papers(epsilon, x):
    """Zheng & Hu, definitions 11 and 12: density p in a window of 2C, else p/e^eps."""
    e, at = math.exp(epsilon), np.linspace(0, 1, 99)
    widths = {
        "pm_01": (math.sqrt(e) - 1) / (e - 1),
        "sw_01": (e * (epsilon - 1) + 1) / (e - 1) ** 2,
    }
    densities = {"pm_01": math.sqrt(e), "sw_01": (e - 1) / epsilon}
    for name, width in widths.items():
        mechanism, p = make(name, epsilon=epsilon), densities[name]
        expected = step_cdf(at, 0, 1, width, e, x)
        assert mechanism.cdf(x, at) == pytest.approx(expected, abs=p * 2e-6)
        density = mechanism.point_probability(x, round(x * 2**20) / 2**20)
        assert density * 2**20 == pytest.approx(p, rel=1e-3)


@pytest.mark.parametrize(("name", "printed"), [("pm_01", 0.8528), ("sw_01", 0.8271)])
def test_printed_concentration(name, printed):
    """At epsilon 2 an output lies within .3 of x = .5 as often as Zheng & Hu print."""
    within = np.diff(make(name, epsilon=2).cdf(0.5, np.array([0.2, 0.8])))
    assert within == pytest.approx(printed, abs=5e-5)


@every_window
def test_low_bits_of_the_input_do_not_matter(name):
    """Inputs with one grid point have one law and give one output for one word."""
    mechanism = make(name, epsilon=1)
    inputs = np.array([0.25, 0.25 + 2**-22, 0.25 - 2**-22])
    outputs = [mechanism.randomize(x, SeededEntropy(SEED)) for x in inputs]
    assert len(set(map(float, outputs))) == 1
    assert np.ptp(mechanism.mean(inputs)) == 0
    halves = np.array([0.5, 1.5, 2.5]) * 2**-20
    assert (np.diff(mechanism._window_centres(halves)) == [2, 0]).all()


@every_window
def test_cdf_jumps_at_the_outputs_themselves(name):
    """An output is reached at its own float and not one float before it."""
    mechanism = make(name, epsilon=0.3)
    window = mechanism.window
    index = np.linspace(window.first, window.last, 20_001).round()
    at, centre = index * mechanism.scale, mechanism._window_centres(0.25)
    assert (mechanism.cdf(0.25, at) == window.cdf(centre, index)).all()
    before = mechanism.cdf(0.25, np.nextafter(at, -np.inf))
    assert (before == window.cdf(centre, index - 1)).all()
