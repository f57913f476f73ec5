"""What `encode` takes for labels, what it refuses, and what its codes say."""

import math
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.labels import Codes, encode
from curvote.mechanisms import make
from curvote.mechanisms.alibi import Alibi
from curvote.systems.labels.codes.codes import places_of
from curvote.systems.labels.codes.encoders import (
    CANDIDATES,
    ENCODERS,
    accuracy_ceiling,
    best_encoder,
    build_encoder,
    code_bytes,
    encoder_efficiency,
    mechanism_name,
    retention,
    signal_ratio,
)
from curvote.systems.labels.codes.encoding import class_shares, entropy_of
from tests.noise import Replay

TEXT = ["sh", "aa", "iy", "aa"]


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series, pd.Index])
@pytest.mark.parametrize("dtype", [None, object])
def test_text(kind, dtype):
    """Sorted without `classes`, in the given order with them."""
    y = kind(TEXT) if kind in {list, tuple} else kind(TEXT, dtype=dtype)
    known, places = places_of(y)
    assert (known.tolist(), places.tolist()) == (["aa", "iy", "sh"], [2, 0, 1, 0])
    known, places = places_of(y, ["sh", "x", "iy", "aa"])
    assert (known.tolist(), places.tolist()) == (["sh", "x", "iy", "aa"], [0, 3, 2, 3])
    assert known.dtype.kind == "U"


@pytest.mark.parametrize("wrap", [pd.Series, pd.CategoricalIndex, lambda it: it])
def test_pandas_categories(wrap):
    """Their order is kept, and unused ones stay classes."""
    held = pd.Categorical(TEXT, categories=["iy", "sh", "never", "aa"])
    known, places = places_of(wrap(held))
    assert known.tolist() == ["iy", "sh", "never", "aa"]
    assert places.tolist() == [1, 3, 0, 3]
    known, places = places_of(wrap(held), ["aa", "iy", "sh"])
    assert (known.tolist(), places.tolist()) == (["aa", "iy", "sh"], [2, 0, 1, 0])
    with pytest.raises(UserError, match="of no class, the first is 'sh' at index 0"):
        places_of(wrap(held), ["aa", "iy"])


@pytest.mark.parametrize("y", [[True, False, True], [True, True]])
def test_truth_values(y):
    """Both are classes, whichever occur."""
    known, places = places_of(y)
    assert known.tolist() == [False, True]
    assert places.tolist() == [int(value) for value in y]


@pytest.mark.parametrize(
    ("y", "places"),
    [([7, -1, 7], [1, 0, 1]), ([7.0, -1.0], [1, 0]), (np.uint8([9, 3]), [1, 0])],
)
def test_numbers(y, places):
    """Whole numbers, also as floats."""
    known, found = places_of(y)
    assert found.tolist() == places
    assert known.tolist() == sorted({*np.asarray(y).tolist()})


@pytest.mark.parametrize(
    ("y", "why"),
    [
        ([1.0, np.nan, 2.0, np.nan], "y holds 2 missing labels, the first at index 1"),
        (["a", None, "b"], "y holds 1 missing labels, the first at index 1"),
        (pd.Series(["a", pd.NA, "b"]), "y holds 1 missing"),
        (pd.Categorical(["a", None, "b"]), "y holds 1 missing labels"),
        ([1.5, 2.0], "labels are text, whole numbers or truth values"),
        ([1.0, np.inf], "NaN|whole|missing|labels"),
        ([1 + 2j, 1], "complex"),
        (["a", 1], "text and other values"),
        (np.array(["a", 1], dtype=object), "text and other values"),
        ([b"a", b"b"], "labels are text"),
        (np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]"), "labels are text"),
        ([[1, 2], [2, 1]], r"y has shape \(2, 2\)"),
        (3, r"y has shape \(\)"),
        ([4, 4, 4], "one class only, 4"),
        (["a"], "one class only, 'a'"),
        ([], "no label"),
    ],
)
def test_bad_labels(y, why):
    """A clear error, before any word is drawn."""
    with pytest.raises(UserError, match=why):
        encode(y, random_state=Replay())


@pytest.mark.parametrize(
    ("classes", "why"),
    [
        (["a"], "give two or more"),
        ([], "the classes are none; give two or more"),
        (["a", "b", "a"], "'a', 'b', 'a'; give two or more, all different"),
        (["a", None], "classes holds 1 missing"),
        (["aa", "b"], r"y holds 1 labels of no class.* index 0; .* Did you mean 'aa'"),
        ([0, 1], "of no class"),
        ([["a", "b"]], "classes has shape"),
    ],
)
def test_bad_classes(classes, why):
    """One class, one twice, none at all, or not the label's."""
    with pytest.raises(UserError, match=why):
        encode(["a", "b"], classes, random_state=Replay())


@pytest.mark.parametrize("epsilon", [0, np.nan, -1, np.inf, 1e-9])
def test_bad_epsilon(epsilon):
    """It is named before any word is drawn."""
    with pytest.raises(UserError, match="epsilon is"):
        encode(TEXT, epsilon=epsilon, random_state=Replay())


def test_a_class_nobody_has():
    """It is allowed, and its share is 0 within chance."""
    y = np.random.default_rng(1).choice(["a", "b"], 20_000)
    codes = encode(y, ["a", "b", "nobody's"], 1.0, random_state=3)
    share, se = class_shares(codes)
    assert abs(share[2]) < 5 * se[2]
    assert share.sum() == pytest.approx(1)


@pytest.mark.parametrize("encoder", [name for name in ENCODERS if "prior" not in name])
def test_shares(encoder):
    """Unbiased with honest standard errors, by every encoder but the biased one."""
    y = np.repeat(np.arange(4), [4000, 3000, 2000, 1000])
    share, se = class_shares(encode(y, epsilon=1.0, encoder=encoder, random_state=5))
    assert (np.abs(share - [0.4, 0.3, 0.2, 0.1]) < 5 * se).all()
    assert (se < 0.1).all()
    law = make(encoder, epsilon=1.0, n_classes=4)
    expected = np.sqrt(law.variance(y).mean(axis=0) / len(y))
    assert se == pytest.approx(expected, rel=0.35)
    with pytest.raises(UserError, match="no code"):
        class_shares(encode([], [1, 2], random_state=0))


def test_codes_that_are_all_alike_have_no_spread():
    """Rounding makes no negative variance of it."""
    for n in range(2, 60):
        _, se = class_shares(
            Codes(np.zeros(n, dtype=int), ["a", "b", "c"], 2.0, "k_rr")
        )
        assert (se < 1e-7).all()


def test_an_encoder_is_told_by_any_of_its_names():
    """Short names are made concrete; a prior goes with one encoder only."""
    assert encode(TEXT, encoder="vector", random_state=0).encoder == "unary_symmetric"
    assert encode(TEXT, random_state=0).encoder == "subset_selection"
    with pytest.raises(UserError, match="hadamard takes no prior"):
        encode(TEXT, encoder="hadamard", prior=np.ones(3))
    with pytest.raises(UserError, match="needs prior"):
        encode(TEXT, encoder="rr_with_prior")
    with pytest.raises(UserError, match=r"prior has 3 rows.* 4 clients"):
        encode(TEXT, encoder="rr_with_prior", prior=np.ones((3, 3)))


@pytest.mark.parametrize("prior", [np.ones(3), np.ones((4, 3))])
def test_a_uniform_prior_is_randomized_response(prior):
    """One for all, or one a client."""
    codes = encode(TEXT, encoder="rr_with_prior", prior=prior, random_state=0)
    plain = encode(TEXT, encoder="rr", random_state=0)
    assert codes.decode() == pytest.approx(plain.decode())
    assert codes.mechanism.worst_ratio() == plain.mechanism.worst_ratio()
    assert codes[1:3].decode() == pytest.approx(plain[1:3].decode())


def test_random_state():
    """A seed repeats, the operating system does not; numpy's generators are seeds."""
    y = np.arange(500) % 5

    def drawn(state) -> list[list[int]]:
        return encode(y, random_state=state).values.tolist()

    assert drawn(3) == drawn(np.int64(3)) == drawn(SeededEntropy(3)) != drawn(4)
    assert drawn(None) != drawn(None)
    generators = (np.random.RandomState, np.random.default_rng)
    for generator in generators:
        assert drawn(generator(1)) == drawn(generator(1)) != drawn(generator(2))
    with pytest.raises(UserError, match="random_state is -1"):
        entropy_of(-1)


def test_a_code_depends_on_its_label_only():
    """The same words make the same code, whoever else is encoded or judged."""
    one = encode(["a", "b", "c"], random_state=9)
    other = encode(["a", "c", "c"], random_state=9)
    assert one.values[0].tolist() == other.values[0].tolist()
    assert isinstance(one, Codes)


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
