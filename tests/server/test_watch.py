"""Whether newer votes are worse: evidence that may be looked at after every batch."""

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.learning.sequences import decline_evidence
from curvote.learning.votes import decline_of_votes

ERROR, LOOKS, VOTES = 0.1, 30, 40


def ever(share: np.ndarray, rng: np.random.Generator) -> bool:
    """Return whether evidence of a decline ever comes, look by look."""
    ones, n = rng.binomial(VOTES, share), np.full(len(share), VOTES)
    looks = range(1, len(share) + 1)
    return any(decline_evidence(n[:t], ones[:t]) >= 1 / ERROR for t in looks)


@pytest.mark.parametrize("ends", [(0.5, 0.5), (0.9, 0.9), (0.6, 0.8)])
def test_false_alerts_are_bounded_for_ever(ends: tuple[float, float]) -> None:
    """Where nothing changes, or it gets better; one look at a time would not do."""
    rng, share = np.random.default_rng(5), np.linspace(*ends, LOOKS)
    assert np.mean([ever(share, rng) for _ in range(150)]) <= ERROR
    assert ever(np.repeat([0.9, 0.5], 10), rng)


def test_evidence_is_fair_in_the_mean() -> None:
    """At any one look it is 1 at most, by every outcome of two looks."""
    for share in (0.2, 0.5, 0.9):
        law = np.array(
            [(1 - share) ** 6 * (share / (1 - share)) ** k for k in range(7)]
        )
        law *= [1, 6, 15, 20, 15, 6, 1]
        mean = sum(
            law[i] * law[j] * decline_evidence([6, 6], [i, j])
            for i in range(7)
            for j in range(7)
        )
        assert mean <= 1
    assert decline_evidence([], []) == 1
    assert decline_evidence([9], [4]) <= 1


def test_a_reversed_candidate_falls_when_it_becomes_right() -> None:
    """What counts is how good it is with the sign that the first batch gave it."""
    worse = decline_of_votes([[90], [90], [90]], [[5], [6], [40]])
    assert worse > 1e3
    assert decline_of_votes([[90], [90], [90]], [[5], [40], [6]]) < 1


def test_the_first_batch_only_gives_signs() -> None:
    """Reversed by chance, candidates look better there than they are."""
    rng = np.random.default_rng(3)
    alerts = 0
    for _ in range(200):
        votes = np.full((4, 10), 8)
        alerts += decline_of_votes(votes, rng.binomial(votes, 0.5)) >= 1 / ERROR
    assert alerts / 200 <= ERROR
    assert decline_of_votes([[8, 0], [8, 8], [8, 8]], [[7, 0], [7, 0], [7, 8]]) < 5


def test_counts_that_cannot_be_are_refused() -> None:
    """More right than there were votes."""
    with pytest.raises(UserError, match="positive of"):
        decline_of_votes([[10], [5]], [[5], [6]])
    with pytest.raises(UserError, match="whole numbers"):
        decline_evidence([3, 3], [1, 1.5])
