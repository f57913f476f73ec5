"""Two-dimensional cosines of images: orthonormal, lowest first, known to clients."""

from dataclasses import replace

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.curves.basis import (
    check_projection,
    image_projection,
    lowest_frequencies,
    roughness_matrix,
)
from curvote.curves.encoding import Encoding


@pytest.mark.parametrize(("side", "size"), [(1, 1), (2, 4), (5, 7), (16, 15), (28, 60)])
def test_cosines_are_orthonormal_and_clients_know_them(side: int, size: int) -> None:
    """What a task brings along is what a client derives from the name alone."""
    given = image_projection(side**2, size)
    np.testing.assert_allclose(given.matrix @ given.matrix.T, np.eye(size), atol=1e-12)
    check_projection(given)
    read = Encoding.from_json(Encoding(given, "none").to_json()).projection
    check_projection(read)
    assert np.array_equal(read.matrix, given.matrix)


def test_the_lowest_frequencies_come_first() -> None:
    """Along the diagonals: fifteen are all whose sum is at most 4."""
    found = lowest_frequencies(256, 15)
    assert found[:3].tolist() == [[0, 0], [0, 1], [1, 0]]
    assert (np.diff(found.sum(axis=1)) >= 0).all()
    assert {tuple(pair) for pair in found} == {
        (i, j) for i in range(5) for j in range(5 - i)
    }


def test_a_cosine_is_found_by_its_place() -> None:
    """An image that is one of them has one coefficient; a flat one has the first."""
    given, side = image_projection(64, 10), 8
    x = np.cos(np.pi * 2 * (np.arange(side) + 0.5) / side)
    across = np.tile(x, (side, 1)).ravel()
    place = lowest_frequencies(64, 10).tolist().index([0, 2])
    assert np.flatnonzero(np.abs(given.apply([across])[0]) > 1e-9).tolist() == [place]
    assert np.flatnonzero(np.abs(given.apply([np.ones(64)])[0]) > 1e-9).tolist() == [0]


def test_roughness_is_that_of_the_laplacian() -> None:
    """Second differences on fine pixels tend to it; a flat image has none."""
    side, size = 64, 6
    given = image_projection(side**2, size)
    waves = given.matrix.reshape(size, side, side)
    padded = np.pad(waves, ((0, 0), (1, 1), (1, 1)), mode="edge")
    laplacian = np.diff(padded, 2, axis=1)[:, :, 1:-1]
    laplacian = laplacian + np.diff(padded, 2, axis=2)[:, 1:-1]
    flat = laplacian.reshape(size, -1)
    np.testing.assert_allclose(
        roughness_matrix(given), flat @ flat.T, rtol=5e-3, atol=1e-12
    )
    assert roughness_matrix(given)[0, 0] == 0


@pytest.mark.parametrize(
    ("points", "size", "said"),
    [(10, 2, "10 values, which make no square"), (9, 10, "only 9 pixels"), (9, 0, "0")],
)
def test_what_makes_no_square_is_refused(points: int, size: int, said: str) -> None:
    """With what was given."""
    with pytest.raises(UserError, match=said):
        image_projection(points, size)


def test_other_cosines_are_no_basis_for_a_client() -> None:
    """Neither turned, nor of another order, nor of more of them than pixels."""
    given = image_projection(16, 6)
    for other in (
        replace(given, matrix=given.matrix[::-1]),
        replace(given, matrix=-given.matrix),
        replace(given, order=4),
        replace(given, domain=(0.0, 16.0)),
    ):
        with pytest.raises(UserError):
            check_projection(other)
