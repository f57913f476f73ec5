"""LP-2ST: half of the labels first, the others with what those taught."""

from __future__ import annotations

import numpy as np
import pytest

from curvote import Budget, PrivateLabelClassifier, UserError
from curvote.base.entropy import SeededEntropy
from curvote.labels import Codes
from curvote.systems.labels.codes.encoding import encode_in_two_rounds

K = np.array(["a", "b", "c"])


def asked(labels: np.ndarray, prior: np.ndarray) -> tuple[Codes, Codes]:
    """Return the codes of the first round and of both, records in reverse order."""
    order = np.arange(len(labels))[::-1]
    first, both = encode_in_two_rounds(
        *(labels, K, 2.0, SeededEntropy(0), order),
        lambda _first, _codes, second: prior[second],
    )
    return first, both


def test_each_client_answers_once_in_its_own_row() -> None:
    """The first half of the order under an even prior, the others under theirs."""
    labels = K[np.arange(7) % 3]
    prior = np.tile([0.98, 0.01, 0.01], (7, 1))
    first, both = asked(labels, prior)
    assert (len(first), len(both)) == (3, 7)
    assert np.array_equal(both.values[::-1][:3], first.values)
    assert both.prior is not None
    assert (both.prior[4:] == 1 / 3).all()
    assert np.array_equal(both.prior[:4], prior[:4])
    # A prior that is sure leaves one answer only: such a client says nothing.
    assert (both.values[:4] == 0).all()


def test_the_second_round_learns_from_the_codes_of_the_first_only() -> None:
    """What makes the prior is given rows and codes, never a label."""
    seen = []

    def prior(first: np.ndarray, codes: Codes, second: np.ndarray) -> np.ndarray:
        seen.append((first, codes, second))
        return np.full((len(second), 3), 1 / 3)

    labels = K[np.arange(40) % 3]
    noise = SeededEntropy(0)
    early, _ = encode_in_two_rounds(labels, K, 1.0, noise, np.arange(40), prior)
    ((first, codes, second),) = seen
    assert codes is early
    assert sorted([*first, *second]) == list(range(40))


def test_the_classifier_asks_in_two_rounds() -> None:
    """Where features tell the class, priors leave few answers; each spends epsilon."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 1200)
    x = np.eye(3)[y] * 4 + rng.normal(size=(1200, 3))
    made = PrivateLabelClassifier("ridge", 2.0, encoder="lp_2st", random_state=0)
    assert made.fit(x, K[y]).score(x, K[y]) > 0.9
    assert made.spent_ == Budget(2.0)
    assert made.encoder_ == "rr_with_prior"


def test_one_client_makes_no_two_rounds() -> None:
    """Each round asks somebody."""
    with pytest.raises(UserError, match="two records or more; X has 1"):
        asked(K[:1], np.ones((1, 3)))
