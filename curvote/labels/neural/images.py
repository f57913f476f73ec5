"""Flat pixels as images."""

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
    def of(cls, X: FloatArray, shape: tuple[int, ...] | None) -> Self:
        """Take the mean and spread of all pixels (n, d), which are public."""
        found = shape_of(X.shape[1], shape)
        return cls(found, float(X.mean()), float(X.std()) or 1.0)

    def images(self, X: FloatArray) -> NDArray[np.float32]:
        """Return rows (n, d) as images, (n, h, w, c)."""
        h, w, c = self.shape
        scaled = ((X - self.mean) / self.spread).astype(np.float32)
        return np.moveaxis(scaled.reshape(len(X), c, h, w), 1, -1)


def shape_of(d: int, stated: tuple[int, ...] | None) -> Shape:
    """Return (height, width, planes) of ``d`` pixels; a misfit is a UserError.

    Without a stated shape images are square, of one plane or of three.
    """
    if stated is not None:
        return _fitting(d, stated)
    for planes in _PLANES:
        side = math.isqrt(d // planes)
        if side * side * planes == d and side >= _LEAST_SIDE:
            return side, side, planes
    raise UserError(
        f"{d} pixels make no square image of one plane or three, {_LEAST_SIDE} pixels"
        " wide or more; state shape: (height, width, planes)."
    )


def _fitting(d: int, stated: tuple[int, ...]) -> Shape:
    if len(stated) != 3 or math.prod(stated) != d:
        raise UserError(
            f"shape is {validate.shown(stated)}, and a record has {d} pixels; give"
            " (height, width, planes), whose product that is."
        )
    h, w, c = (validate.at_least(1, shape=int(side)) for side in stated)
    if min(h, w) < _LEAST_SIDE:
        raise UserError(
            f"shape is {validate.shown(stated)}; an image has at least"
            f" {_LEAST_SIDE} pixels a side."
        )
    return h, w, c
