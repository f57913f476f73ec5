"""Networks on images as a learner; JAX is imported when one is fitted."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from curvote import validate
from curvote.errors import UserError
from curvote.validate import FloatArray

Shape = tuple[int, int, int]
# Two convolutions with poolings halve each side twice.
_LEAST_SIDE = 4
_PLANES = (1, 3)


class Pixels(NamedTuple):
    """How rows of pixels become images (n, h, w, c) of mean 0 and variance 1.

    A row holds one plane of colour after the other, each row by row.
    """

    shape: Shape
    mean: float
    spread: float

    @classmethod
    def from_records(cls, X: FloatArray, shape: tuple[int, ...] | None) -> Self:
        """Return the mean and spread of all pixels (n, d), which are public."""
        size = image_shape(X.shape[1], shape)
        return cls(size, float(X.mean()), float(X.std()) or 1.0)

    def images(self, X: FloatArray) -> NDArray[np.float32]:
        """Return rows (n, d) as images, (n, h, w, c)."""
        h, w, c = self.shape
        scaled = ((X - self.mean) / self.spread).astype(np.float32)
        return np.moveaxis(scaled.reshape(len(X), c, h, w), 1, -1)


def image_shape(d: int, shape: tuple[int, ...] | None) -> Shape:
    """Return (height, width, planes) of ``d`` pixels; a misfit is a UserError.

    Without a stated shape images are square, of one plane or of three.
    """
    if shape is not None:
        return _check_image_shape(d, shape)
    for planes in _PLANES:
        side = math.isqrt(d // planes)
        if side * side * planes == d and side >= _LEAST_SIDE:
            return side, side, planes
    raise UserError(
        f"{d} pixels make no square image of one plane or three, {_LEAST_SIDE} pixels"
        " wide or more; state shape: (height, width, planes)."
    )


def _check_image_shape(d: int, shape: tuple[int, ...]) -> Shape:
    if len(shape) != 3 or math.prod(shape) != d:
        raise UserError(
            f"shape is {validate.format_value(shape)}, and a record has {d} pixels;"
            " give"
            " (height, width, planes), whose product that is."
        )
    h, w, c = (validate.at_least(1, shape=int(side)) for side in shape)
    if min(h, w) < _LEAST_SIDE:
        raise UserError(
            f"shape is {validate.format_value(shape)}; an image has at least"
            f" {_LEAST_SIDE} pixels a side."
        )
    return h, w, c
