"""How much one code says: laws against brute force, and against draws."""

from __future__ import annotations

import math
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.mechanisms.alibi import Alibi
from curvote.systems.labels.codes.encoders import (
    CANDIDATES,
    accuracy_ceiling,
    best_encoder,
    build_encoder,
    code_bytes,
    encoder_efficiency,
    mechanism_name,
    retention,
    signal_ratio,
)

EPSILONS = (0.01, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
CLASSES = (2, 3, 4, 8, 16, 33, 100, 1000)


@pytest.mark.parametrize("encoder", CANDIDATES)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("n_classes", [2, 3, 5, 7])
def test_signal_is_that_of_the_channel(encoder, epsilon, n_classes):
    """The variance of the difference of two decoded numbers, output by output."""
    law = build_encoder(encoder, n_classes, epsilon)
    labels = np.arange(n_classes)
    chances, rows = law.probabilities(labels), law.decode(law.outputs())
    spread = []
    for own, other in product(labels, labels):
        if own != other:
            gap = rows[:, own] - rows[:, other]
            mean = chances[own] @ gap
            assert mean == pytest.approx(1)
            spread.append(chances[own] @ gap**2 - mean**2)
    assert 1 / signal_ratio(law) == pytest.approx(np.mean(spread))


@pytest.mark.parametrize("encoder", CANDIDATES)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("n_classes", [2, 5, 9])
def test_pair_is_that_of_the_channel(encoder, epsilon, n_classes):
    """One of two labels is supported without the other as often as is said."""
    law = build_encoder(encoder, n_classes, epsilon)
    table = law._support_table(law.outputs())
    chances = law.probabilities([0])[0]
    alone = [chances @ (table[:, a] & ~table[:, b]) for a, b in ((0, 1), (1, 0))]
    assert alone == pytest.approx([float(chance) for chance in law.pair()])
    own, other = law.pair()
    assert own / other == law.worst_ratio()


@pytest.mark.parametrize("encoder", [*CANDIDATES, "alibi"])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("n_classes", [2, 6])
def test_retention_is_that_of_draws(encoder, epsilon, n_classes):
    """How often a code's likeliest class, at random among equals, is the label."""
    row = encoder_efficiency(encoder, n_classes, epsilon, draws=40_000, seed=3)
    law, labels = (
        build_encoder(encoder, n_classes, epsilon),
        np.arange(40_000) % n_classes,
    )
    codes = law.randomize(labels, SeededEntropy(5))
    likely = law.likelihood(codes) == 1
    right = likely[np.arange(40_000), labels] / likely.sum(axis=1)
    assert abs(right.mean() - row.retention) < 5 * right.std() / 200
    assert abs(row.measured - row.signal) < 5 * row.se
    assert row.retention <= row.ceiling + 1e-12
    assert row.nbytes == codes[:1].nbytes == code_bytes(law)


@pytest.mark.parametrize("encoder", CANDIDATES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_code_is_above_the_ceiling(encoder, epsilon):
    """e^eps/K bounds every guess from one code, of whichever encoder (B.1)."""
    for n_classes in (2, 5, 40, 500):
        law = build_encoder(encoder, n_classes, epsilon)
        top = math.exp(epsilon) / (math.exp(epsilon) + n_classes - 1)
        kept = retention(law)
        assert 1 / n_classes - 1e-9 <= kept <= top * (1 + 1e-9)
        assert top <= accuracy_ceiling(n_classes, epsilon)
        if encoder == "k_rr":
            assert kept == pytest.approx(top)


def test_formulas_are_those_of_the_listed_outputs():
    """Sets, bits and noise have formulas; listing all outputs gives the same."""
    listed = retention.dispatch(object)
    for encoder in ("subset_selection", "unary_symmetric", "unary_optimised"):
        for epsilon, n_classes in product((0.1, 1.0, 5.0), (2, 5, 8)):
            law = build_encoder(encoder, n_classes, epsilon)
            assert retention(law) == pytest.approx(listed(law))
    with pytest.raises(UserError, match="4096"):
        listed(build_encoder("unary_symmetric", 20, 1.0))


def test_subset_selection_is_never_below_vector():
    """For every number of classes and epsilon of a grid; at K = 2 it is k_rr."""
    for n_classes, epsilon in product(CLASSES, EPSILONS):
        subset, vector = (
            signal_ratio(build_encoder(name, n_classes, epsilon))
            for name in ("subset_selection", "unary_symmetric")
        )
        assert subset >= vector * (1 - 1e-12)
    for epsilon in EPSILONS:
        subset, rr = (
            build_encoder(name, 2, epsilon) for name in ("subset_selection", "k_rr")
        )
        assert subset.channel() == rr.channel()
        assert subset.pair_variance() == rr.pair_variance()


@pytest.mark.parametrize(("n_classes", "times"), [(2, 2.13), (8, 1.16), (100, 1.01)])
def test_known_gains_over_vector(n_classes, times):
    """The published ratios at epsilon 1."""
    subset, vector = (
        signal_ratio(build_encoder(name, n_classes, 1.0))
        for name in ("subset_selection", "unary_symmetric")
    )
    assert subset / vector == pytest.approx(times, abs=0.006)


def test_auto_takes_the_largest_signal_and_few_bytes():
    """By the number of classes and epsilon only; of equals the smallest code."""
    for n_classes, epsilon in product(CLASSES, EPSILONS):
        signals = {
            name: signal_ratio(build_encoder(name, n_classes, epsilon))
            for name in CANDIDATES
        }
        name = mechanism_name("auto", n_classes, epsilon)
        assert name == best_encoder(n_classes, epsilon)
        top = [one for one in CANDIDATES if signals[one] == max(signals.values())]
        sizes = {one: code_bytes(build_encoder(one, n_classes, epsilon)) for one in top}
        assert name in top
        assert sizes[name] == min(sizes.values())
    assert best_encoder(2, 1.0) == best_encoder(100, 1.0) == "subset_selection"
    assert best_encoder(100, 10.0) == "k_rr"


class SoftLabels(NamedTuple):
    """Statistics of soft labels of `alibi`: of one of them, and of the mean of k.

    ``label_weight`` and ``other_weight`` are the mean weights (29) of the label and of
    another class, ``bound`` is the mean of (30) on ``label_weight``, and ``right`` how
    often the mean of k soft labels of one class is largest there: (30) does not bound
    that.
    """

    label_weight: float
    other_weight: float
    bound: float
    k: int
    right: float


def soft_label_statistics(
    n_classes: int, epsilon: float, k: int, means: int, seed: int = 0
) -> SoftLabels:
    """Return statistics of ``means`` times ``k`` drawn soft labels of one class."""
    mechanism = Alibi(epsilon=epsilon, n_classes=n_classes)
    labels = np.zeros(k * means)
    outputs = mechanism.randomize(labels, SeededEntropy(seed))
    soft = mechanism.soft(outputs)
    above = np.count_nonzero(outputs[:, 1:] >= outputs[:, :1], axis=1)
    averaged = soft.reshape(means, k, n_classes).mean(axis=1)
    return SoftLabels(
        label_weight=float(soft[:, 0].mean()),
        other_weight=float(soft[:, 1:].mean()),
        bound=float((1 / np.maximum(above, 1)).mean()),
        k=k,
        right=float((averaged.argmax(axis=1) == 0).mean()),
    )


def test_30_speaks_of_one_soft_label_and_not_of_the_mean_of_many():
    """One soft label hardly names its class among many; the mean of k does."""
    few, many = (soft_label_statistics(100, 1.0, k=k, means=40) for k in (10, 2000))
    for one in (few, many):
        assert one.label_weight <= one.bound
        assert one.label_weight < 0.03
    assert few.right < 0.3
    assert many.right > 0.9
    assert many.label_weight > many.other_weight
