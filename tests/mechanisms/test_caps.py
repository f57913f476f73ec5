"""What both mechanisms of directions, PrivUnit and 1-of-K, promise of their caps."""

from fractions import Fraction

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.mechanisms import make
from curvote.mechanisms.privunit import MAX_CLASSES, SMALLEST_SHARE, Cap, PrivUnit
from tests.noise import SEED, exp_oracle

# The number of classes, 1 for none, and the numbers of a direction.
KINDS = [(1, 2), (1, 3), (1, 5), (1, 13), (1, 34), (1, 50), (2, 3), (5, 3), (26, 9)]
kinds = pytest.mark.parametrize(("n_classes", "p"), KINDS)


def made(epsilon: float, n_classes: int, p: int) -> PrivUnit:
    """Return the mechanism of directions of p numbers."""
    if n_classes == 1:
        return make("privunit", epsilon=epsilon, d=p)
    return make("one_of", epsilon=epsilon, d=n_classes * p, n_classes=n_classes)


class AcceptAll:
    """Seeded words for candidates, zeros for their acceptance: the first is kept.

    Each candidate takes ``calls`` calls, the last of which decides.
    """

    def __init__(self, calls: int) -> None:
        self._source, self._every, self._calls = SeededEntropy(SEED), calls, 0

    def words(self, n: int) -> np.ndarray:
        self._calls += 1
        words = self._source.words(n)
        return words if self._calls % self._every else np.zeros_like(words)


@kinds
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2, 5, 10])
def test_the_cap_is_the_best(epsilon, n_classes, p):
    """No other height gives longer means; the best is its own mean height."""
    mechanism = made(epsilon, n_classes, p)
    gamma = mechanism.cap.gamma
    assert mechanism.m == pytest.approx(gamma, rel=1e-5)
    for other in (0.8 * gamma, 0.95 * gamma, gamma + 0.05 * (1 - gamma)):
        twin = made(epsilon, n_classes, p)
        twin.cap = Cap(other, p)
        assert twin.m < mechanism.m


@kinds
@pytest.mark.parametrize(
    "epsilon", [0.01, 0.05, 0.1, 0.3, 0.7, 1, 1.5, 2, 3, 5, 7.7, 10, 20]
)
def test_thresholds_are_rounded_towards_privacy(epsilon, n_classes, p):
    """The thresholds' ratio leaves the margin; the next ratio would not."""
    mechanism = made(epsilon, n_classes, p)
    allowed = exp_oracle(Fraction(epsilon) - Fraction(mechanism.margin))
    assert mechanism.worst_ratio() <= allowed
    if epsilon <= 2:  # as far as the oracle is sharp
        assert Fraction(1 << 64, mechanism.threshold_out - 1) > allowed
    if epsilon <= 3 or n_classes > 1:
        assert 0 < mechanism.margin < 1e-9 * epsilon
    assert mechanism.threshold_in == 1 << 64
    assert epsilon - 1e-6 < mechanism.worst_log_ratio() <= epsilon


@pytest.mark.parametrize(("n_classes", "p"), [(1, 4), (4, 3)])
def test_every_answer_is_possible_for_every_input(n_classes, p):
    """A candidate is a function of words alone: the input only keeps or drops."""
    mechanism = made(5.0, n_classes, p)
    u = np.linspace(-1, 2, p)
    answers = [
        mechanism.randomize(
            np.tile(
                np.roll([*turn * u, *[0] * (p * (n_classes - 1))], own * p), (50, 1)
            ),
            AcceptAll(2 + (n_classes > 1)),
        )
        for turn in (1, -1)
        for own in range(n_classes)
    ]
    for other in answers[1:]:
        assert (other == answers[0]).all()
    blocks = answers[0].reshape(50, n_classes, p)
    assert blocks.any(axis=(0, 2)).all()


@pytest.mark.parametrize(
    ("n_classes", "p"),
    [(1, 2), (1, 3), (1, 50), (2, 3), (26, 3), (MAX_CLASSES, 3)],
)
def test_the_work_is_bounded(n_classes, p):
    """However large epsilon is, at least 2^-12 of the candidates is kept."""
    for epsilon in (20, 44, 1e4):
        mechanism = made(epsilon, n_classes, p)
        share = mechanism.cap.share if n_classes == 1 else mechanism.share
        assert mechanism.acceptance >= share >= SMALLEST_SHARE * (1 - 1e-9)


@pytest.mark.parametrize(
    ("name", "given", "match"),
    [
        ("privunit", {"d": 1}, "d is 1"),
        ("one_of", {"d": 4, "n_classes": 1}, "n_classes is 1"),
        ("one_of", {"d": 7, "n_classes": 3}, "3 blocks"),
        ("one_of", {"d": 3, "n_classes": 3}, "d is 3"),
        ("one_of", {"d": 1 << 12, "n_classes": 1 << 11}, "at most 1,024"),
    ],
)
def test_what_is_no_record_is_refused(name, given, match):
    """One class, blocks of several lengths, a single number, too many classes."""
    with pytest.raises(UserError, match=match):
        make(name, epsilon=1, **given)
