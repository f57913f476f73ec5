"""What needs no network: images, and what is said where JAX is absent."""

import sys
from typing import Any

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.labels import encode
from curvote.systems.labels.learners.factory import make
from curvote.systems.labels.neural.learner import Pixels, image_shape


@pytest.mark.parametrize("missing", ["jax", "optax"])
def test_without_the_extra_it_says_what_to_install(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Making one is no error; fitting it is."""
    monkeypatch.delitem(
        sys.modules, "curvote.systems.labels.neural.training", raising=False
    )
    monkeypatch.setitem(sys.modules, missing, None)
    model, codes = make("neural"), encode(np.arange(4) % 2)
    with pytest.raises(UserError, match=r"pip install 'curvote\[neural\]'"):
        model.fit(np.zeros((4, 16)), codes, np.random.default_rng(0))


def test_pixels_are_images_plane_by_plane() -> None:
    """Each row of pixels of a colour, one below the other; mean 0, variance 1."""
    X = np.arange(2 * 3 * 4 * 5, dtype=float).reshape(2, -1)
    pixels = Pixels.from_records(X, (4, 5, 3))
    images = pixels.images(X)
    assert images.shape == (2, 4, 5, 3)
    assert images.mean() == pytest.approx(0, abs=1e-6)
    assert images.std() == pytest.approx(1)
    red = images[0, :, :, 0] * pixels.spread + pixels.mean
    assert red == pytest.approx(np.arange(20).reshape(4, 5), abs=1e-4)


@pytest.mark.parametrize(
    ("d", "stated", "shape"),
    [
        (784, None, (28, 28, 1)),
        (3072, None, (32, 32, 3)),
        (256, None, (16, 16, 1)),
        (60, (5, 12, 1), (5, 12, 1)),
    ],
)
def test_shapes(d: int, stated: Any, shape: tuple[int, int, int]) -> None:
    """Square of one plane or three, or as stated."""
    assert image_shape(d, stated) == shape


@pytest.mark.parametrize(
    ("d", "stated", "said"),
    [
        (60, None, "60 pixels make no square image"),
        (4, None, "no square image"),
        (60, (5, 12), r"shape is \(5, 12\)"),
        (60, (2, 30, 1), "at least 4 pixels a side"),
    ],
)
def test_pixels_that_are_no_image_are_refused(d: int, stated: Any, said: str) -> None:
    """With their number."""
    with pytest.raises(UserError, match=said):
        image_shape(d, stated)
