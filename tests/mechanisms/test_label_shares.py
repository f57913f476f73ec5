"""Label mechanisms with shares of their own: a prior of the labels, or p and q."""

import math
from fractions import Fraction

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.mechanisms import make
from tests.noise import EPSILONS, SEED, Replay


def prior_rr(prior, epsilon=1):
    """Return randomized response with that prior."""
    return make("rr_with_prior", epsilon=epsilon, n_classes=len(prior), prior=prior)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_uniform_prior_is_k_rr(epsilon):
    """Where all labels are as likely, nothing is gained: k_rr."""
    for K in (2, 5, 9):
        plain = make("k_rr", epsilon=epsilon, n_classes=K)
        mechanism = prior_rr([0.1] * K, epsilon)
        assert mechanism.channel() == plain.channel()
        assert mechanism.worst_ratio() == plain.worst_ratio()


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_likely_labels_maximise_what_is_right(epsilon):
    """No other k makes the output the true label more often, k counted from 1."""
    rng = np.random.default_rng(SEED)
    for prior in rng.dirichlet(np.full(7, 0.8), 20):
        top = np.sort(prior)[::-1]
        e = math.exp(epsilon)
        right = [e / (e + k - 1) * top[:k].sum() for k in range(1, 8)]
        mechanism = prior_rr(prior, epsilon)
        (k,) = mechanism.k
        assert k == np.argmax(right) + 1
        assert prior[mechanism.outputs()].sum() == pytest.approx(top[:k].sum())


def test_likely_labels_count_from_1():
    """Shares 10 : 3 at epsilon 1 keep one label; counting k from 0 would keep two."""
    mechanism = prior_rr([3, 10])
    assert mechanism.outputs().tolist() == [1]
    assert mechanism.worst_ratio() == 1
    assert not mechanism.tight
    assert mechanism.randomize([0, 1, 0], Replay()).tolist() == [1, 1, 1]
    assert mechanism.decode(np.array([1])).tolist() == [[0, 1]]
    assert prior_rr([4, 10]).k == 2


def test_unlikely_labels():
    """A label without prior is never named; whoever has it names the others evenly."""
    mechanism = prior_rr([0, 2, 2, 0, 1.9])
    assert mechanism.outputs().tolist() == [1, 2, 4]
    assert mechanism.channel()[0] == mechanism.channel()[3] == [Fraction(1, 3)] * 3
    assert prior_rr(1e300 * np.array([0, 2, 2, 0, 1.9])).channel() == (
        mechanism.channel()
    )


@pytest.mark.parametrize(
    "prior", [[1, 2], [1, -1, 3], [0, 0, 0], [1, np.nan, 2], [[[1, 2, 3]]], []]
)
def test_prior_refused(prior):
    """A prior of wrong length, or with no positive sum, is a UserError."""
    with pytest.raises(UserError, match="prior"):
        make("rr_with_prior", epsilon=1, n_classes=3, prior=prior)


def unary(p: float, q: float, epsilon: float = 1.0):
    """Return the unary code with p and q for four classes."""
    return make("unary", epsilon=epsilon, n_classes=4, p=p, q=q)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_unary_takes_p_and_q_of_the_others(epsilon):
    """A pair that spends epsilon up to rounding is taken, and stays within it."""
    root = math.exp(epsilon / 2)
    for p, q in ((root / (1 + root), 1 / (1 + root)), (0.5, 1 / (1 + root**2))):
        mechanism = unary(p, q, epsilon)
        assert mechanism.tight
        assert mechanism.worst_ratio() <= math.exp(epsilon) * (1 + 1e-12)
        assert mechanism.worst_log_ratio() <= epsilon
        assert float(mechanism.p) == pytest.approx(p, rel=1e-12)
        assert float(mechanism.q) == pytest.approx(q, rel=1e-12)


def test_unary_that_spends_less():
    """A code below its claim says so: its loss is that of p and q."""
    mechanism = unary(0.5, 0.4)
    assert mechanism.worst_log_ratio() == pytest.approx(math.log(1.5))
    assert not mechanism.tight


def test_unary_rounds_towards_privacy():
    """To whole words p goes down and q goes up, even from below the first one."""
    mechanism = unary(0.5, 1e-30, epsilon=100)
    assert (mechanism.p, mechanism.q) == (Fraction(1, 2), Fraction(1, 2**64))


@pytest.mark.parametrize(
    ("p", "q"), [(0.5, 0.26), (0.74, 0.5), (0.3, 0.5), (0.5, 0.5), (1, 0.5), (0.5, 0)]
)
def test_unary_refuses(p, q):
    """A pair that loses too much, says nothing, or is no pair of shares: UserError."""
    with pytest.raises(UserError, match=r"^[pq][ =]"):
        unary(p, q)


def test_a_likely_and_an_unlikely_label_use_the_same_words():
    """How many are asked for, and in which order, is the same for every label."""

    class Counting(SeededEntropy):
        def __init__(self):
            super().__init__(SEED)
            self.asked = []

        def words(self, n):
            self.asked.append(n)
            return super().words(n)

    mechanism = prior_rr((0.45, 0.35, 0.1, 0.05, 0.05), 2.0)
    assert 1 < mechanism.k[0] < 5
    asked = []
    for label in range(5):
        entropy = Counting()
        mechanism.randomize(np.full(8, label), entropy)
        asked.append(entropy.asked)
    assert asked[0] == [8, 8, 8]
    assert all(one == asked[0] for one in asked)


PRIORS = np.array(
    [[1, 1, 1, 1], [1, 0, 0, 0], [8, 7, 1, 0], [0, 1, 1, 1], [0.1, 0.2, 0.3, 0.4]]
)


def test_a_prior_a_client_is_that_client_s_own_mechanism():
    """Everything is as if each client had a mechanism of its own; k differs."""
    rows = np.arange(5)
    each = [prior_rr(prior) for prior in PRIORS]
    mechanism = make("rr_with_prior", epsilon=1, n_classes=4, prior=PRIORS)
    assert mechanism.k.tolist() == [int(one.k[0]) for one in each]
    assert len({*mechanism.k.tolist()}) > 2
    assert mechanism.worst_ratio() == max(one.worst_ratio() for one in each)
    for shift in range(4):
        labels = (rows + shift) % 4
        outputs = mechanism.randomize(labels, SeededEntropy(SEED + shift))
        assert mechanism.possible_mask(outputs).all()
        for name, given in (
            ("decode", outputs),
            ("likelihood", outputs),
            ("mean", labels),
            ("variance", labels),
        ):
            found = getattr(mechanism, name)(given)
            alone = [getattr(one, name)(given[[i]])[0] for i, one in enumerate(each)]
            assert found == pytest.approx(np.array(alone)), name
        other = np.roll(labels, 1)
        with np.errstate(invalid="ignore"):
            loss = mechanism.log_ratio(labels, other, outputs)
            alone = [
                one.log_ratio(labels[[i]], other[[i]], outputs[[i]])[0]
                for i, one in enumerate(each)
            ]
        assert loss == pytest.approx(np.array(alone), nan_ok=True)


def test_a_prior_a_client_is_drawn_by_its_own_law():
    """Each client's outputs have the channel of its own prior."""
    n = 20_000
    priors = np.tile(PRIORS, (n, 1))
    labels = np.repeat(np.arange(4), 5 * n // 4)
    mechanism = make("rr_with_prior", epsilon=1, n_classes=4, prior=priors)
    outputs = mechanism.randomize(labels, SeededEntropy(SEED))
    for which, prior in enumerate(PRIORS):
        alone = prior_rr(prior)
        for label in range(4):
            seen = outputs[(np.arange(labels.size) % 5 == which) & (labels == label)]
            expected = np.zeros(4)
            expected[alone.outputs()] = alone.probabilities([label])[0]
            shares = np.bincount(seen, minlength=4) / seen.size
            assert np.abs(shares - expected).max() < 6 * math.sqrt(0.25 / seen.size)


def test_a_prior_a_client_must_be_of_these_clients():
    """Another number of clients is a UserError that names both; no word is drawn."""
    mechanism = make("rr_with_prior", epsilon=1, n_classes=4, prior=PRIORS)
    with pytest.raises(UserError, match=r"prior has 5 rows.* 3 clients"):
        mechanism.randomize([0, 1, 2], Replay())
    with pytest.raises(UserError, match="outputs"):
        mechanism.channel()
    prior = [[1, 2], [0, 0]]
    with pytest.raises(UserError, match=r"prior .* \(row 1\)"):
        make("rr_with_prior", epsilon=1, n_classes=2, prior=prior)
