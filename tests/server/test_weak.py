"""Drawing reports for the weak learners, and fitting problems of mixed sizes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curvote.base.errors import UserError
from curvote.learning import learners, votes
from curvote.learning.learners.registry import Fits
from tests.problems import assert_same, every_learner, noisy, random_gram, taking


@given(st.integers(1, 60), st.integers(1, 20), st.data())
@settings(deadline=None)
def test_each_learner_draws_different_reports(
    n: int, count: int, data: st.DataObject
) -> None:
    """A draw holds size different indices below n, for every learner."""
    size = data.draw(st.integers(1, n))
    found = votes.draw_subsets(np.random.default_rng(n), n, count, size)
    assert found.shape == (count, size)
    assert all(np.unique(row).size == size for row in found)
    assert found.min() >= 0
    assert found.max() < n


def test_draws_are_uniform_and_reproducible() -> None:
    """Every report is drawn equally often, at every place; a seed fixes the draw."""
    found = votes.draw_subsets(np.random.default_rng(15), 10, 20_000, 4)
    for place in found.T:
        share = np.bincount(place, minlength=10) / 20_000
        assert np.abs(share - 0.1).max() < 6 * np.sqrt(0.1 * 0.9 / 20_000)
    again = votes.draw_subsets(np.random.default_rng(15), 10, 20_000, 4)
    np.testing.assert_array_equal(found, again)


@given(st.integers(1, 200), st.data())
@settings(deadline=None)
def test_parts_are_disjoint_and_equal(n: int, data: st.DataObject) -> None:
    """No report stands in two parts, and all parts have floor(n/count)."""
    count = data.draw(st.integers(1, n))
    found = votes.disjoint_parts(np.random.default_rng(n), n, count)
    together = np.concatenate(found)
    assert [part.size for part in found] == [n // count] * count
    assert np.unique(together).size == together.size
    assert set(together.tolist()) <= set(range(n))


def test_more_than_there_is_cannot_be_drawn() -> None:
    """Asking for more reports than exist is a user error, and so is asking for none."""
    generator = np.random.default_rng(0)
    with pytest.raises(UserError, match="only 10 reports"):
        votes.draw_subsets(generator, 10, 3, 11)
    with pytest.raises(UserError, match="size is 0"):
        votes.draw_subsets(generator, 10, 3, 0)
    with pytest.raises(UserError, match="only 10 reports"):
        votes.disjoint_parts(generator, 10, 11)


@every_learner
def test_problems_of_mixed_sizes_keep_their_order(name: str) -> None:
    """Grouping by size is invisible: result i belongs to problem i.

    The Gram matrix reaches the learners that take one, and only these.
    """
    sizes, gram = [20, 30, 20, 10, 30, 20], random_gram(5, 3)
    whole = [noisy(seed, 1, n, 3) for seed, n in enumerate(sizes)]
    fits = votes.fit_problems(name, [(x[0], y[0]) for x, y in whole], gram=gram)
    takes = taking(name, gram=gram)
    singles = [learners.fit(name, x, y, **takes) for x, y in whole]
    expected = Fits(
        np.concatenate([single.coef for single in singles]),
        np.concatenate([single.intercept for single in singles]),
        np.concatenate([single.flagged for single in singles]),
        singles[0].ridge,
    )
    assert_same(fits, expected)


def test_problems_must_share_their_dimension() -> None:
    """No problem at all, or problems of different d, are user errors."""
    with pytest.raises(UserError, match="must share one d"):
        votes.fit_problems("cg", [], gram=np.eye(2))
    x, y = np.ones((4, 2)), np.array([1.0, -1, 1, -1])
    with pytest.raises(UserError, match="must share one d"):
        votes.fit_problems("cg", [(x, y), (x[:, :1], y)], gram=np.eye(2))
