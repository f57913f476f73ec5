"""Published facts about each label mechanism, and the exact samplers of bits."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.linalg import hadamard as sylvester
from scipy.stats import chi2

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.mechanisms import exact, frequency_oracles, make
from curvote.mechanisms.frequency_oracles import SubsetSelection, best_subset_size
from tests.noise import ALPHA, EPSILONS, SEED, Replay, exp_oracle

RARE = {
    "k_rr": lambda e, K: (K - 2 + e) / (e - 1) ** 2,
    "unary_symmetric": lambda e, K: math.sqrt(e) / (math.sqrt(e) - 1) ** 2,
    "unary_optimised": lambda e, K: 4 * e / (e - 1) ** 2,
}


@pytest.mark.parametrize("name", RARE)
@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
@pytest.mark.parametrize("n_classes", [2, 10, 1000])
def test_variance_of_a_rare_label(name, epsilon, n_classes):
    """The variance for a label nobody has is that of Wang et al. (2017, table 1)."""
    mechanism = make(name, epsilon=epsilon, n_classes=n_classes)
    published = RARE[name](math.exp(epsilon), n_classes)
    assert mechanism.variance([0])[0, 1] == pytest.approx(published, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 3])
@pytest.mark.parametrize("n_classes", [2, 7, 100_000])
def test_thresholds_are_exact_floors(epsilon, n_classes):
    """Kept shares are rounded down from e^eps/(e^eps + K - 1), by a rational oracle."""
    power = exp_oracle(Fraction(epsilon))
    kept = make("k_rr", epsilon=epsilon, n_classes=n_classes)
    assert kept.threshold == math.floor(2**64 * power / (power + n_classes - 1))
    optimised = make("unary_optimised", epsilon=epsilon, n_classes=n_classes)
    assert optimised.p == Fraction(1, 2)
    assert optimised.other_threshold == math.ceil(2**64 / (power + 1))
    symmetric = make("unary_symmetric", epsilon=epsilon, n_classes=n_classes)
    assert symmetric.p + symmetric.q == 1
    assert symmetric.worst_ratio() == (symmetric.p / symmetric.q) ** 2


@pytest.mark.parametrize("name", [*RARE, "subset_selection", "hadamard"])
def test_most_classes(name):
    """More classes than 64-bit thresholds can serve are a UserError."""
    with pytest.raises(UserError, match="n_classes"):
        make(name, epsilon=1, n_classes=2**31 + 1)


def test_k_rr_on_given_words():
    """Below the threshold a label is kept; else a word names one of the others."""
    mechanism = make("k_rr", epsilon=1, n_classes=4)
    last = mechanism.threshold - 1
    words = Replay(last, last + 1, last + 1, 2**64 - 1, 0, 1, 2)
    assert mechanism.randomize([1, 1, 1, 1], words).tolist() == [1, 0, 2, 3]


@pytest.mark.parametrize(
    ("n_classes", "omega"),
    [(2, 1), (4, 2), (8, 3), (10, 4), (16, 6), (32, 12), (64, 24), (100, 38)],
)
def test_omega_at_epsilon_1(n_classes, omega):
    """The set sizes at epsilon 1 are the known ones."""
    assert make("subset_selection", epsilon=1, n_classes=n_classes).omega == omega


def efficiency(mechanism: SubsetSelection) -> float:
    """Return (p - q)^2 / Var(Z_c - Z_j) by counting sets: Z_c != Z_j in two ways."""
    K, w = mechanism.n_classes, mechanism.omega
    only_own = mechanism.p * Fraction(K - w, K - 1)
    only_other = (1 - mechanism.p) * Fraction(w, K - 1)
    mean = only_own - only_other
    assert mean == mechanism.p - mechanism.q
    return float(mean**2 / (only_own + only_other - mean**2))


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 2, 5, 10, 800])
def test_omega_is_the_most_efficient(epsilon):
    """No other set size tells two labels apart better."""
    for K in (2, 3, 5, 12, 33):
        sets = {
            w: efficiency(SubsetSelection(epsilon=epsilon, n_classes=K, omega=w))
            for w in range(1, K)
        }
        assert sets[best_subset_size(epsilon, K)] == max(sets.values())


def test_subset_selection_of_two_is_randomized_response():
    """With two classes the set is one label: k_rr, and so Warner's."""
    subset = make("subset_selection", epsilon=1.3, n_classes=2)
    plain = make("k_rr", epsilon=1.3, n_classes=2)
    assert np.unpackbits(subset.outputs(), axis=1)[:, :2].tolist() == [[1, 0], [0, 1]]
    assert subset.channel() == plain.channel()


@pytest.mark.parametrize("omega", [None, 1, 60, 98, 99])
def test_subset_size(omega):
    """Every set has omega labels, the true one with probability p."""
    mechanism = make("subset_selection", epsilon=1, n_classes=100, omega=omega)
    sets = mechanism.randomize(np.arange(4000) % 100, SeededEntropy(SEED))
    rows = np.unpackbits(sets, axis=1)
    assert (rows.sum(axis=1) == mechanism.omega).all()
    assert not rows[:, 100:].any()
    own = rows[np.arange(4000), np.arange(4000) % 100]
    p = float(mechanism.p)
    assert abs(own.mean() - p) < 6 * math.sqrt(p * (1 - p) / 4000)


@pytest.mark.parametrize("omega", [0, 5, 2.5, -1])
def test_subset_size_out_of_range(omega):
    """A set of no label, or of all, says nothing: UserError."""
    with pytest.raises(UserError, match="omega"):
        make("subset_selection", epsilon=1, n_classes=5, omega=omega)


@pytest.mark.parametrize("share", [None, 0, 100, 256])
@pytest.mark.parametrize("size", [1, 3])
def test_subsets_are_uniform(share, size, monkeypatch):
    """All subsets are equally likely, wherever the search for one begins."""
    if share is not None:
        monkeypatch.setattr(exact, "_initial_share", lambda size, width: share)
    n, width, barred = 20_000, 6, 2
    rows = exact.random_subsets(
        np.full(n, size), np.full(n, barred), width, SeededEntropy(SEED)
    )
    seen = rows @ (1 << np.arange(width))
    others = [1 << i for i in range(width) if i != barred]
    known = [sum(some) for some in combinations(others, size)]
    counts = np.array([np.count_nonzero(seen == one) for one in known])
    assert counts.sum() == n
    even = n / len(known)
    assert chi2.sf(((counts - even) ** 2 / even).sum(), len(known) - 1) > ALPHA


@pytest.mark.parametrize("rest", [0, 5, 2**56 - 1])
@pytest.mark.parametrize("lead", [0, 77, 255])
def test_bernoulli_is_settled_by_the_whole_threshold(lead, rest):
    """A bit is 1 iff leading byte and further 56 bits are below the threshold's."""
    leading = [0, lead, lead, 255, max(lead - 1, 0), lead, min(lead + 1, 255), lead]
    tied = [byte for byte in leading if byte == lead]
    tails = [max(rest - 1, 0), rest, 0, 2**56 - 1, 1][: len(tied)]
    tails += [0] * (len(tied) - len(tails))
    first = int(np.array(leading, dtype=np.uint8).view(np.uint64)[0])
    out = exact.bernoulli_bits(
        (lead << 56) + rest, 8, Replay(first, *(tail << 8 for tail in tails))
    )
    left = iter(tails)
    whole = [(b << 56) + (next(left) if b == lead else 0) for b in leading]
    assert out.tolist() == [word < (lead << 56) + rest for word in whole]


@pytest.mark.parametrize("epsilon", [0.2, 0.69])
def test_hadamard_with_one_block(epsilon):
    """At small epsilon P(column | label) follows one row of Sylvester's matrix."""
    for K, size in ((2, 4), (3, 4), (4, 8), (7, 8), (8, 16)):
        mechanism = make("hadamard", epsilon=epsilon, n_classes=K)
        assert mechanism.size == size
        inside = Fraction(mechanism.threshold, 2**64) / (size // 2)
        chances = {1: inside, -1: Fraction(2, size) - inside}
        rows = sylvester(size)[1 : K + 1].tolist()
        assert mechanism.channel() == [[chances[s] for s in row] for row in rows]
        assert mechanism.worst_ratio() == chances[1] / chances[-1]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_hadamard_blocks(epsilon, monkeypatch):
    """The number of blocks is at least as good as the paper's; each label is in one."""
    for K in (2, 5, 33, 100):
        ours = make("hadamard", epsilon=epsilon, n_classes=K)
        assert ours.size <= 4 * K
        published = 2 ** (math.ceil(math.log2(min(math.exp(epsilon), 2 * K))) - 1)
        with monkeypatch.context() as patch:
            patch.setattr(
                frequency_oracles, "best_blocks", lambda epsilon, K, B=published: B
            )
            paper = make("hadamard", epsilon=epsilon, n_classes=K)
        total, theirs = (m.variance(np.arange(K)).sum() for m in (ours, paper))
        assert total <= theirs * (1 + 1e-9)
