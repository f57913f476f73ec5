"""`DirectClassifier` of more than two classes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from curvote import DirectClassifier, MRMAClassifier
from curvote.messages.arms import ARM_PROTOCOLS

ARMS = ("auto", "mean", "joint", *ARM_PROTOCOLS)
WORDS = np.array(["aa", "ao", "dcl", "iy", "sh"])
Data = tuple[np.ndarray, np.ndarray]


def words(n: int, seed: int = 0) -> Data:
    """Return n records of four numbers and the word of their class, one of five."""
    rng = np.random.default_rng(seed)
    places = rng.integers(len(WORDS), size=n)
    means = np.random.default_rng(9).uniform(-0.6, 0.6, (len(WORDS), 4))
    x = means[places] + 0.2 * rng.standard_normal((n, 4))
    return np.clip(x, -1, 1), WORDS[places]


@pytest.mark.parametrize("arm", ARMS)
def test_it_names_classes_in_their_own_words(arm: str) -> None:
    """At much budget most of five words are right; a line stands for each."""
    x, y = words(8_000)
    model = DirectClassifier(arm=arm, epsilon=5, random_state=1).fit(x, y)
    assert model.classes_.tolist() == WORDS.tolist()
    assert model.coef_.shape == (5, 4)
    assert model.decision_function(x[:7]).shape == (7, 5)
    assert model.score(*words(2_000, seed=3)) > 0.75
    assert clone(model).fit(x, y).coef_.tolist() == model.coef_.tolist()


@pytest.mark.parametrize("arm", ARMS)
def test_a_real_release_of_few_rows_names_some_class(arm: str) -> None:
    """By exact rejection, from the operating system's randomness."""
    x, y = words(40)
    model = DirectClassifier(arm=arm, epsilon=1).fit(x, y)
    assert set(model.predict(x)) <= set(WORDS)
    assert model.private_
    assert model.spent_.epsilon == 1


def test_numbers_may_name_classes() -> None:
    """Three of them, not in steps of one."""
    x, y = words(3_000)
    numbers = np.searchsorted(WORDS, y) % 3 * 7 - 4
    model = DirectClassifier(epsilon=4, random_state=0).fit(x, numbers)
    assert set(model.predict(x)) <= {-4, 3, 10}


def test_no_probability_is_claimed() -> None:
    """`predict_proba` is absent, and says why to whoever asks."""
    model = DirectClassifier(random_state=0).fit(*words(200))
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="calibrated"):
        _ = model.predict_proba


def test_voting_classifiers_still_tell_two_apart() -> None:
    """`MRMAClassifier` refuses more, in scikit-learn's words."""
    with pytest.raises(ValueError, match="Only binary classification"):
        MRMAClassifier().fit(*words(300))
