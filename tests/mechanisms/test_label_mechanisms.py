"""The promises of every label mechanism, over the registry."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import chi2

from curvote.base.entropy import SeededEntropy, SystemEntropy
from curvote.base.errors import UserError
from curvote.mechanisms import exact, make
from curvote.mechanisms.base import SMALLEST_EPSILON, LabelMechanism
from curvote.mechanisms.frequency_oracles import UnarySymmetric
from tests.noise import ALPHA, EPSILONS, SEED, Replay, exp_oracle, names_of

# The outputs of "alibi" are too many to list: its own tests are in test_alibi.
LABELS = [name for name in names_of(LabelMechanism) if name != "alibi"]


def build(name: str, epsilon: float, n_classes: int = 5) -> LabelMechanism:
    """Return the mechanism with parameters that spend all of epsilon (up to 30)."""
    params = {}
    if name == "unary":
        params = {"p": 0.5, "q": 1 / (1 + math.exp(min(epsilon, 30)))}
    if name == "rr_with_prior":
        # All labels are likely but the last one, of more than two.
        params = {"prior": np.arange(n_classes) < max(2, n_classes - 1)}
    return make(name, epsilon=epsilon, n_classes=n_classes, **params)


@pytest.fixture(params=LABELS)
def name(request) -> str:
    """Each label mechanism of the registry in turn."""
    return request.param


def ratios(channel: list[list[Fraction]]) -> set[Fraction]:
    """Return P(output | x) / P(output | x2) for all outputs and pairs of labels."""
    columns = zip(*channel, strict=True)
    return {a / b for column in columns for a, b in product(set(column), repeat=2)}


def check_private(mechanism: LabelMechanism) -> None:
    """No pair of labels and no output loses more than epsilon; the worst nearly it."""
    assert max(ratios(mechanism.channel())) == mechanism.worst_ratio()
    assert mechanism.worst_log_ratio() <= mechanism.epsilon
    if mechanism.tight:
        assert mechanism.worst_log_ratio() >= mechanism.epsilon - 1e-6


def keys(outputs: np.ndarray) -> np.ndarray:
    """Return one whole number for each output."""
    if outputs.ndim == 1:
        return outputs
    return outputs @ 256 ** np.arange(outputs.shape[1])


def pooled(counts: np.ndarray, expected: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return both with the rarest outputs as one, so that each is expected 10 times."""
    order = np.argsort(expected)
    rare = np.searchsorted(np.cumsum(expected[order]), 10) + 1
    rare = max(rare, np.count_nonzero(expected < 10))
    cuts = np.arange(rare, order.size)
    return tuple(np.add.reduceat(x[order], [0, *cuts]) for x in (counts, expected))


def follows(draws: np.ndarray, law: LabelMechanism, label: int) -> bool:
    """Say whether the draws have the declared law, by a chi-square test at ALPHA."""
    known, seen = keys(law.outputs()), keys(draws)
    if not np.isin(seen, known).all():
        return False
    order = np.argsort(known)
    counts = np.bincount(np.searchsorted(known[order], seen), minlength=known.size)
    expected = law.probabilities([label])[0, order] * seen.size
    counts, expected = pooled(counts, expected)
    distance = ((counts - expected) ** 2 / expected).sum()
    return bool(chi2.sf(distance, expected.size - 1) > ALPHA)


def draw(mechanism: LabelMechanism, label: int, n: int) -> np.ndarray:
    """Return n outputs for one label."""
    return mechanism.randomize(np.full(n, label), SeededEntropy(SEED))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_privacy_loss(name, epsilon, n_classes):
    """The channel's worst ratio is the declared one, epsilon or hardly below it."""
    mechanism = build(name, epsilon, n_classes)
    check_private(mechanism)
    if epsilon <= 3:
        assert mechanism.worst_ratio() <= exp_oracle(Fraction(epsilon))
    assert mechanism.tight == (mechanism.worst_log_ratio() > epsilon - 1e-6)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_privacy_loss_with_many_classes(name, epsilon):
    """The loss is as near to epsilon for 100,000 classes as for two."""
    mechanism = build(name, epsilon, 100_000)
    assert mechanism.tight
    assert epsilon - 1e-6 <= mechanism.worst_log_ratio() <= epsilon


def test_whole_epsilon_on_each_bit_is_caught():
    """A unary code that spends epsilon on each of the two bits fails the check."""
    twin = UnarySymmetric(epsilon=2, n_classes=5)
    twin.epsilon = 1.0
    with pytest.raises(AssertionError):
        check_private(twin)


@pytest.mark.parametrize("epsilon", [0.1, 2, 10])
def test_channel(name, epsilon):
    """Rows sum to 1 exactly; probabilities and log ratios are the channel's."""
    mechanism = build(name, epsilon)
    channel, outputs, labels = mechanism.channel(), mechanism.outputs(), np.arange(5)
    assert all(sum(row) == 1 and min(row) > 0 for row in channel)
    assert len({*keys(outputs).tolist()}) == len(outputs) == len(channel[0])
    floats = np.array(channel, dtype=float)
    assert mechanism.probabilities(labels) == pytest.approx(floats, rel=1e-15)
    for x, x2 in product(labels, labels):
        loss = mechanism.log_ratio([x], [x2], outputs)
        assert loss == pytest.approx(np.log(floats[x] / floats[x2]), abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 2, 10])
def test_decode_over_the_channel(name, epsilon):
    """Decoded outputs have the declared mean and variance; unbiased: the one-hot."""
    mechanism, labels = build(name, epsilon), np.arange(5)
    chances, rows = (
        mechanism.probabilities(labels),
        mechanism.decode(mechanism.outputs()),
    )
    assert rows.dtype == np.float64
    mean, square = chances @ rows, chances @ rows**2
    close = {"abs": 1e-9 * max(1, square.max())}
    assert mechanism.mean(labels) == pytest.approx(mean, **close)
    assert mechanism.variance(labels) == pytest.approx(square - mean**2, **close)
    if mechanism.unbiased:
        assert (mechanism.mean(labels) == np.eye(5)).all()


@pytest.mark.parametrize("epsilon", [0.5, 2])
def test_mean_and_variance(name, epsilon):
    """Decoded draws have the declared mean and variance, with two bytes of bits too."""
    mechanism, n = build(name, epsilon, 11), 30_000
    for label in (0, 7, 10):
        rows = mechanism.decode(draw(mechanism, label, n))
        mean, variance = mechanism.mean([label])[0], mechanism.variance([label])[0]
        assert (np.abs(rows.mean(axis=0) - mean) <= 6 * np.sqrt(variance / n)).all()
        fourth = ((rows - mean) ** 4).mean(axis=0)
        off = np.abs(rows.var(axis=0) - variance)
        assert (off <= 6 * np.sqrt(fourth / n) + 1e-12).all()


@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
@pytest.mark.parametrize("n_classes", [2, 5, 9])
def test_sampling_law(name, epsilon, n_classes):
    """Draws for each label have the declared law."""
    mechanism = build(name, epsilon, n_classes)
    for label in range(n_classes):
        assert follows(draw(mechanism, label, 20_000), mechanism, label)


@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_sampling_law_of_another_epsilon(name, factor):
    """Draws do not have the law of a smaller or a larger epsilon."""
    assert not follows(draw(build(name, 1), 0, 50_000), build(name, factor), 0)


def test_many_chunks(name, monkeypatch):
    """The law is the same where a batch is worked off in many pieces."""
    monkeypatch.setattr(exact, "_BITS_AT_ONCE", 700)
    mechanism = build(name, 1)
    assert follows(draw(mechanism, 3, 20_000), mechanism, 3)


def test_clients_are_independent(name):
    """Neighbouring clients' outputs are uncorrelated, whatever their labels."""
    mechanism, n = build(name, 1), 20_000
    outputs = mechanism.randomize(np.arange(n) % 5, SeededEntropy(SEED))
    rows = mechanism.decode(outputs) - mechanism.mean(np.arange(n) % 5)
    spread = rows.std(axis=0) + 1e-12
    for lag in (1, 5):
        products = (rows[lag:] * rows[:-lag]).mean(axis=0) / spread**2
        assert np.abs(products).max() < 6 / math.sqrt(n)


@pytest.mark.parametrize("n", [0, 1, 6])
@pytest.mark.parametrize("n_classes", [2, 8, 9])
def test_shape(name, n, n_classes):
    """Outputs are (n,) int64 or (n, ceil(K/8)) uint8, all possible; decoded (n, K)."""
    mechanism = build(name, 1, n_classes)
    out = mechanism.randomize([n_classes - 1] * n, SystemEntropy())
    packed = (np.dtype(np.uint8), (n, math.ceil(n_classes / 8)))
    assert (out.dtype, out.shape) in {(np.dtype(np.int64), (n,)), packed}
    assert mechanism.possible_mask(out).tolist() == [True] * n
    assert mechanism.decode(out).shape == (n, n_classes)


def test_possible(name):
    """What no client can have sent is told apart, whatever its form."""
    mechanism = build(name, 1)
    outputs = mechanism.outputs()
    assert mechanism.possible_mask(outputs).tolist() == [True] * len(outputs)
    if outputs.ndim == 1:
        strange = np.array([-1, 0.5, np.nan, np.inf, 100])
    else:
        strange = outputs | np.uint8(1)
    assert not mechanism.possible_mask(strange).any()
    assert not mechanism.possible_mask(np.zeros((3, 2), dtype=np.uint8)).any()
    assert not mechanism.possible_mask(np.zeros((3, 1), dtype=np.float64)).any()


@pytest.mark.parametrize("bad", [-1, 5, 0.5])
def test_unknown_label_draws_nothing(name, bad):
    """What is no label is a UserError before a single word is drawn."""
    with pytest.raises(UserError, match="values"):
        build(name, 1).randomize([0, 1, bad, 2], Replay())


@pytest.mark.parametrize("shape", [(), (4, 1), (2, 2)])
def test_wrong_shape_draws_nothing(name, shape):
    """Anything but (n,) is a UserError."""
    with pytest.raises(UserError, match=r"\(n,\)"):
        build(name, 1).randomize(np.zeros(shape), Replay())


@pytest.mark.parametrize("epsilon", [SMALLEST_EPSILON, 100, 1e4, 1e300])
def test_extreme_epsilon(name, epsilon):
    """From the smallest epsilon to absurd ones the loss stays below the claim."""
    mechanism = build(name, epsilon)
    most = 30 if name == "unary" else 44
    assert 0.99 * min(epsilon, most) <= mechanism.worst_log_ratio() <= epsilon
    out = mechanism.randomize(np.arange(5), SystemEntropy())
    assert mechanism.possible_mask(out).all()
    for finite in (mechanism.decode(out), mechanism.variance(np.arange(5))):
        assert np.isfinite(finite).all()


def test_classes_out_of_range(name):
    """One class, or none, is a UserError; too many outputs are not written out."""
    for bad in (0, 1):
        with pytest.raises(UserError, match="n_classes"):
            build(name, 1, bad)
    mechanism = build(name, 0.1, 5000)
    for written in (mechanism.outputs, mechanism.channel):
        with pytest.raises(UserError, match="4096"):
            written()
