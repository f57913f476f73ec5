"""Laws of the court of labels: each is what it says, and each half has its seeds."""

import numpy as np
import pytest

from benchmarks.court import labels
from benchmarks.court.cells import HALVES, seeds


@pytest.mark.parametrize("seed", range(0, 10, 2))
def test_a_law_is_of_its_seed_and_draws_labels_as_it_says(seed: int) -> None:
    """Each kind: the same again; shares of drawn labels are the mean of eta."""
    law, again = labels.draw_law(seed), labels.draw_law(seed)
    x, y, codes = labels.draw_repetition(law, np.random.default_rng(0))
    other = labels.draw_repetition(again, np.random.default_rng(0))
    assert str(law) == str(again)
    assert all(np.array_equal(a, b) for a, b in zip((x, y), other, strict=False))
    eta = law.eta(x)
    assert (x.shape, codes.n_classes, len(codes)) == ((law.n, law.d), law.k, law.n)
    assert eta.sum(axis=1) == pytest.approx(1)
    shares = np.bincount(y, minlength=law.k) / law.n
    assert np.abs(shares - eta.mean(axis=0)).max() < 5 * np.sqrt(0.25 / law.n)
    # The likelier class is right as often as the law says, and not by chance alone.
    right = (eta.argmax(axis=1) == y).mean()
    assert abs(right - eta.max(axis=1).mean()) < 5 * np.sqrt(0.25 / law.n)
    assert right > shares.max()


def test_halves_share_no_seed_and_have_all_kinds() -> None:
    """Even seeds are chosen on, odd ones reported."""
    halves = [list(seeds(half, labels.CELLS)) for half in HALVES]
    assert not set(halves[0]) & set(halves[1])
    for half in halves:
        kinds = [labels.draw_law(seed).kind for seed in half[: len(labels.KINDS)]]
        assert sorted(kinds) == sorted(labels.KINDS)
