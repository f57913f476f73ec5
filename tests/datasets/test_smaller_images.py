"""Images made smaller by the means of equal squares."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.data.public.cifar import CIFAR_10
from curvote.data.public.images import MNIST
from tests import image_files

RNG = np.random.default_rng(6)
LABELS = np.arange(12) % 10
PIXELS = RNG.integers(0, 256, (12, 784), dtype=np.uint8)


@pytest.fixture
def paths(tmp_path: Path) -> dict[str, Path]:
    """Return the files of twelve digits."""
    names = MNIST.files(MNIST.Parameters())
    return image_files.idx_paths(tmp_path, names, LABELS, PIXELS)


@pytest.mark.parametrize("side", [1, 7, 14, 28])
def test_a_value_is_the_mean_of_its_square(paths: dict[str, Path], side: int) -> None:
    """Row by row; as many as the source says, each named once."""
    parameters = MNIST.Parameters(classes="all", side=side)
    curves = MNIST.clients(parameters, paths)["curve"][:12]
    each = 28 // side
    grid = PIXELS.reshape(12, 28, 28)
    for row, column in [(0, 0), (side - 1, 0), (side // 2, side - 1)]:
        rows, columns = slice(row * each, None), slice(column * each, None)
        square = grid[:, rows, columns][:, :each, :each]
        assert np.allclose(curves[:, row * side + column], square.mean(axis=(1, 2)))
    assert curves.shape[1] == MNIST.width(parameters)
    facts = MNIST.facts(parameters, paths)
    assert len({feature["name"] for feature in facts["features"]}) == side**2


def test_colours_shrink_plane_by_plane() -> None:
    """Three colours of 16 x 16."""
    assert CIFAR_10.width(CIFAR_10.Parameters(side=16)) == 3 * 256


def test_a_side_that_does_not_divide_is_refused() -> None:
    """The message names the place and the publisher's side."""
    with pytest.raises(UserError, match="5 does not divide 28"):
        MNIST.width(MNIST.Parameters(side=5))
