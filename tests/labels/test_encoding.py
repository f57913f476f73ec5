"""What `encode` takes for labels, what it refuses, and what its codes say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.labels import Codes, encode
from curvote.mechanisms import make
from curvote.systems.labels.codes.codes import places_of
from curvote.systems.labels.codes.encoders import ENCODERS
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
