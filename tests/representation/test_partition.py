"""Public partitions of z: cells that are equally likely, made from no record."""

import json
from typing import Any

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.curves.encoding import RESCALING_CONSTANTS
from curvote.curves.partition import (
    ASSUMED_LAWS,
    Partitions,
    assumed_quantiles,
    bin_partitions,
    half_partitions,
    random_grid,
)

D = 3
NORMAL = np.random.default_rng(1).standard_normal((60_000, D))
every_rescale = pytest.mark.parametrize("rescale", RESCALING_CONSTANTS)


def made(rescale: str) -> dict[str, Partitions]:
    """Return a partition of each kind."""
    rng = np.random.default_rng(2)
    return {
        "bins": bin_partitions(D, rescale, 3),
        "halves": half_partitions(D, rescale, 2),
        "grid": random_grid(D, rescale, 8, rng),
        "deep": random_grid(1, rescale, 8, rng),
    }


@every_rescale
def test_cells_are_as_likely_as_they_should_be(rescale: str) -> None:
    """Of z that follow the assumed law, whichever the rescaling."""
    z = np.asarray(ASSUMED_LAWS[rescale](NORMAL))
    wanted = {"bins": [1 / 3] * 3, "grid": [1 / 8] * 8, "deep": [1 / 8] * 8}
    for name, shares in wanted.items():
        asked = made(rescale)[name]
        for row in range(asked.count):
            found = np.bincount(asked.place(z, np.full(len(z), row)))
            np.testing.assert_allclose(found / len(z), shares, atol=0.01)
    beyond = made(rescale)["halves"]
    shares_ = [beyond.place(z, np.full(len(z), row)).mean() for row in range(2 * D)]
    np.testing.assert_allclose(shares_, [2 / 3, 1 / 3] * D, atol=0.01)


def test_bins_are_those_between_edges() -> None:
    """A value at an edge lies below it; everything beyond all edges in the last bin."""
    asked, edges = (
        bin_partitions(1, "none", 4),
        assumed_quantiles("none", [0.25, 0.5, 0.75]),
    )
    z = np.array([-9.0, edges[0], 0.0, 1e-9, edges[2], 9.0])[:, None]
    place = asked.place(z, np.zeros(len(z), dtype=np.int64))
    assert place.tolist() == [0, 0, 1, 2, 2, 3]


def test_each_record_is_placed_by_its_own_question() -> None:
    """The number that the question names decides, and no other."""
    z = np.where(np.eye(D) > 0, 9.0, -9.0)
    asked = half_partitions(D, "none", 1)
    for row in range(D):
        found = asked.place(z, np.full(D, row))
        assert found.tolist() == np.eye(D, dtype=int)[row].tolist()
    assert asked.place(z, np.arange(D)).tolist() == [1] * D


def test_a_grid_halves_longest_edges() -> None:
    """With as many halvings as numbers, no number is halved twice in one cell."""
    for seed in range(20):
        asked = random_grid(D, "none", 2**D, np.random.default_rng(seed))
        assert not asked.threshold.any()  # medians only
        corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * D)).reshape(D, -1).T
        found = asked.place(corners, np.zeros(2**D, dtype=np.int64))
        assert sorted(found) == list(range(2**D))
    first = {
        int(random_grid(D, "none", 4, np.random.default_rng(s)).feature[0, 0])
        for s in range(40)
    }
    assert first == set(range(D))


@every_rescale
def test_partitions_survive_a_task_and_a_table(rescale: str) -> None:
    """As JSON, and as columns of floats."""
    for asked in made(rescale).values():
        given: dict[str, Any] = {k: v.tolist() for k, v in asked.columns.items()}
        floats = {name: v.astype(float) for name, v in asked.columns.items()}
        for again in (json.loads(json.dumps(given)), floats):
            read = Partitions.from_columns(again, asked.d)
            for name, values in asked.columns.items():
                np.testing.assert_array_equal(read.columns[name], values)
                assert read.columns[name].dtype == values.dtype


@pytest.mark.parametrize(
    "wrong",
    [
        {"of": [[1, 1]]},
        {"of": [[0, 0.5]]},
        {"of": [[0, -1]]},
        {"feature": [[0, D]]},
        {"feature": [[0, -1]]},
        {"feature": [[0]]},
        {"threshold": [[0.0, float("nan")]]},
        {"threshold": [[0.0, float("inf")]]},
        {"threshold": [0.0, 1.0]},
        {"threshold": [["a", "b"]]},
        {"of": [[]], "feature": [[]], "threshold": [[]]},
    ],
)
def test_cuts_that_part_nothing_are_refused(wrong: dict[str, Any]) -> None:
    """And so are those of a part that is missing."""
    right = {"of": [[0, 1]], "feature": [[0, 2]], "threshold": [[0.0, 1.0]]}
    assert Partitions.from_columns(right, D).cells == 3
    with pytest.raises(UserError):
        Partitions.from_columns(right | wrong, D)
    for name in right:
        with pytest.raises(UserError, match=name):
            Partitions.from_columns({k: v for k, v in right.items() if k != name}, D)
