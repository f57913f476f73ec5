"""Duchi et al.'s two outputs, and the coin between them and the piecewise law."""

import math
from fractions import Fraction

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.mechanisms import make
from curvote.mechanisms.piecewise import LEAST_PIECEWISE
from tests.noise import EPSILONS, SEED, Replay

INPUTS = np.linspace(-1, 1, 41)
LAST_WORD = 2**64 - 1


def worst_variance(name: str, epsilon: float) -> float:
    """The largest variance over the inputs, the ends and the middle among them."""
    return make(name, epsilon=epsilon).variance(INPUTS).max()


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_duchi_law_is_the_papers(epsilon):
    """Wang et al. (2019), algorithm 1: +-C, P(+C) linear in x, variance C^2 - x^2."""
    mechanism, e = make("duchi", epsilon=epsilon), math.exp(epsilon)
    largest = (e + 1) / (e - 1)
    assert mechanism.outputs == pytest.approx([-largest, largest], rel=1e-12)
    up = 1 / 2 + INPUTS * (e - 1) / (2 * (e + 1))
    assert mechanism.probabilities(INPUTS)[:, 1] == pytest.approx(up, abs=2**-20)
    variance = largest**2 - mechanism.mean(INPUTS) ** 2
    assert mechanism.variance(INPUTS) == pytest.approx(variance, rel=1e-6)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_duchi_is_exactly_unbiased(epsilon):
    """The mean, as a fraction of the integers, is the input's grid point."""
    mechanism = make("duchi", epsilon=epsilon)
    largest = Fraction(2**64, 2 * mechanism.threshold - 2**64)
    assert mechanism.largest == float(largest)
    for index in (-(2**20), -3, 0, 1, 777_777, 2**20):
        up = Fraction(index + 2**20, 2**21)
        kept = Fraction(mechanism.threshold, 2**64)
        positive = up * kept + (1 - up) * (1 - kept)
        assert (2 * positive - 1) * largest == Fraction(index, 2**20)


@pytest.mark.parametrize("index", [-(2**20), -5, 0, 2**19, 2**20])
def test_duchi_words(index):
    """The top 21 bits of one word choose the sign, another word keeps or flips it."""
    mechanism = make("duchi", epsilon=1)
    below = index + 2**20
    first = {True: (below - 1 << 43) + 2**43 - 1, False: below << 43}
    second = {True: mechanism.threshold - 1, False: mechanism.threshold}
    for positive, word in first.items():
        if 0 <= word <= LAST_WORD:
            for kept, other in second.items():
                drawn = mechanism.randomize(index / 2**20, Replay(word, other))
                assert drawn == (1 if positive == kept else -1) * mechanism.largest


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_hybrid_worst_variance_is_the_papers(epsilon):
    """Wang et al. (2019), corollary 1: below both above epsilon .61, else Duchi's."""
    root, e = math.exp(epsilon / 2), math.exp(epsilon)
    ours, duchi, piecewise = (
        worst_variance(name, epsilon) for name in ("hybrid", "duchi", "piecewise")
    )
    if epsilon > LEAST_PIECEWISE:
        alone = (root + 3) / (3 * root * (root - 1))
        expected = alone + (e + 1) ** 2 / (root * (e - 1) ** 2)
        assert ours < min(duchi, piecewise)
    else:
        expected = ((e + 1) / (e - 1)) ** 2
        assert ours == duchi < piecewise
    assert ours == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("epsilon", [0.7, 1, 2, 5, 10])
def test_hybrid_variance_does_not_depend_on_the_input(epsilon):
    """The coin balances a variance that falls with |x| and one that rises."""
    variance = make("hybrid", epsilon=epsilon).variance(INPUTS)
    assert np.ptp(variance) < 1e-4 * variance.max()


def test_hybrid_switches_where_the_worst_variances_meet():
    """At the limit .609 the worst variance is the same with the coin and without."""
    below, above = (
        worst_variance("hybrid", LEAST_PIECEWISE * (1 + off)) for off in (0, 1e-12)
    )
    assert make("hybrid", epsilon=LEAST_PIECEWISE).coin == 0
    assert make("hybrid", epsilon=LEAST_PIECEWISE * (1 + 1e-12)).coin > 0
    assert above == pytest.approx(below, rel=1e-5)


def test_hybrid_coin_is_a_word_that_no_input_changes():
    """The word below the coin's integer leads to piecewise, the next one to Duchi."""
    mechanism = make("hybrid", epsilon=1)
    assert mechanism.coin == pytest.approx(2**64 * -math.expm1(-0.5), rel=1e-15)
    for x in INPUTS:
        inner = mechanism.randomize(x, Replay(mechanism.coin - 1, LAST_WORD, 5))
        outer = mechanism.randomize(x, Replay(mechanism.coin, 0, 0))
        assert inner == mechanism.piecewise.randomize(x, Replay(LAST_WORD, 5))
        assert outer in mechanism.duchi.outputs


@pytest.mark.parametrize("epsilon", [0.3, 1])
def test_hybrid_outputs_are_those_of_its_parts(epsilon):
    """Piecewise outputs are possible only where the coin can choose them."""
    mechanism = make("hybrid", epsilon=epsilon)
    inner = mechanism.piecewise.randomize(INPUTS, SeededEntropy(SEED))
    assert mechanism.possible_mask(mechanism.duchi.outputs).all()
    assert (mechanism.possible_mask(inner) == (epsilon == 1)).all()
    assert not mechanism.piecewise.possible_mask(mechanism.duchi.outputs).any()


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_hybrid_loss_is_the_larger_of_its_parts(epsilon):
    """The worst ratio is exactly the larger one of the mechanisms in use."""
    mechanism = make("hybrid", epsilon=epsilon)
    parts = [mechanism.duchi.worst_ratio()]
    if epsilon > LEAST_PIECEWISE:
        parts.append(mechanism.piecewise.worst_ratio())
    assert mechanism.worst_ratio() == max(parts)
