"""Networks on images as a learner; JAX is imported when one is fitted."""

import math
from dataclasses import KW_ONLY, dataclass
from importlib import import_module
from types import ModuleType
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.systems.labels.learners.base import Learner, LeftOutVotes, TrainingSet

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
        problem = f"shape is {validate.format_value(shape)}"
        if len(shape) != 3 or math.prod(shape) != d:
            raise UserError(
                f"{problem}, and a record has {d} pixels; give (height, width, planes),"
                " whose product that is."
            )
        h, w, c = (validate.at_least(1, shape=int(side)) for side in shape)
        if min(h, w) < _LEAST_SIDE:
            raise UserError(
                f"{problem}; an image has at least {_LEAST_SIDE} pixels a side."
            )
        return h, w, c
    for planes in _PLANES:
        side = math.isqrt(d // planes)
        if side * side * planes == d and side >= _LEAST_SIDE:
            return side, side, planes
    raise UserError(
        f"{d} pixels make no square image of one plane or three, {_LEAST_SIDE} pixels"
        " wide or more; state shape: (height, width, planes)."
    )


ARCHITECTURES: Final = ("cnn", "resnet18")
LOSSES: Final = ("bce", "likelihood")

Index = NDArray[np.intp]


@dataclass(eq=False, repr=False)
class Neural(Learner):
    """A network on images: ``cnn``, or ``resnet18`` for small colour images.

    ``loss`` is ``likelihood``, a softmax with the codes' channel behind it, or ``bce``:
    sigmoids with binary cross entropy on the codes' bits, as published. Adam of step
    ``rate`` on batches of ``batch``, ``epochs`` times through the records. ``width`` is
    the number of channels of the first convolution, None 16 or 64. ``shape`` (height,
    width, planes) is that of the images; None takes square ones. Records are flat
    pixels, plane by plane.

    The share ``aside`` of the records, in [0, 1), is not learnt from: it calibrates the
    probabilities, which would otherwise take three more networks.

    It needs the extra ``neural``; absent, `fit` and `votes` are UserErrors. What is
    kept are numpy arrays. The same seed makes the same network on the same machine.
    """

    architecture: str = "cnn"
    loss: str = "likelihood"
    _: KW_ONLY
    epochs: int = 13
    batch: int = 400
    rate: float = 1e-3
    width: int | None = None
    shape: tuple[int, int, int] | None = None
    aside: float = 0.1

    def _learn(self, data: TrainingSet) -> None:
        """Fit the network; records without a code teach it nothing."""
        X, codes, rng, _ = data
        training = _import_training()
        validate.one_of(ARCHITECTURES, architecture=self.architecture)
        validate.one_of(LOSSES, loss=self.loss)
        if self.width is not None:
            validate.at_least(1, width=self.width)
        validate.at_least(1, epochs=self.epochs)
        validate.at_least(1, batch=self.batch)
        validate.positive(rate=self.rate)
        pixels = Pixels.from_records(X, self.shape)
        if not 0 <= self.aside < 1:
            raise UserError(
                f"aside is {validate.format_value(self.aside)}; it must be a share in"
                " [0, 1)."
            )
        order = rng.permutation(len(X))
        first = min(len(X) - 1, round(self.aside * len(X)))
        aside_rows, training_rows = np.sort(order[:first]), np.sort(order[first:])
        targets = training.LOSSES[self.loss].targets(codes[training_rows])
        self.params_, self.stats_ = training.train(
            self,
            lambda rows: pixels.images(X[training_rows[rows]]),
            targets.values,
            pixels.shape,
            rng,
        )
        self.pixels_, self.range_ = pixels._asdict(), targets.range

        def leave_out() -> LeftOutVotes:
            return LeftOutVotes(aside_rows, self.votes(X[aside_rows]))

        self._set_left_out(leave_out if len(aside_rows) else None)

    def votes(self, X: FloatArray) -> FloatArray:
        """Return the votes for records of flat pixels (n, d), (n, K)."""
        training, pixels = _import_training(), Pixels(**self.pixels_)
        outputs = training.outputs(
            self.architecture,
            training.Trained(self.params_, self.stats_),
            lambda rows: pixels.images(X[rows]),
            len(X),
        )
        votes: FloatArray = training.LOSSES[self.loss].votes(outputs, self.range_)
        return votes


def _import_training() -> ModuleType:
    """Return the module that runs JAX; without the extra a UserError."""
    try:
        return import_module("curvote.systems.labels.neural.training")
    except ImportError as error:
        raise UserError(
            f"learner neural needs {error.name}, which is not installed: pip install"
            " 'curvote[neural]'."
        ) from None
