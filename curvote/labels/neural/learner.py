"""Networks of VEC section 5.2 as a learner; JAX is imported when one is fitted."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from curvote import validate
from curvote.errors import UserError
from curvote.labels.codes import Codes
from curvote.labels.learners.base import Learner, LeftOutVotes
from curvote.labels.neural.images import Pixels
from curvote.validate import FloatArray

ARCHITECTURES: Final = ("cnn", "resnet18")
LOSSES: Final = ("bce", "likelihood")

Index = NDArray[np.intp]


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

    def __init__(
        self,
        architecture: str = "cnn",
        loss: str = "likelihood",
        *,
        epochs: int = 13,
        batch: int = 400,
        rate: float = 1e-3,
        width: int | None = None,
        shape: tuple[int, int, int] | None = None,
        aside: float = 0.1,
    ) -> None:
        self.architecture = architecture
        self.loss = loss
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.width = width
        self.shape = shape
        self.aside = aside

    def fit(
        self,
        X: FloatArray,
        codes: Codes,
        rng: np.random.Generator,
        unlabelled: FloatArray | None = None,
    ) -> Self:
        """Fit the network; records without a code teach it nothing."""
        training = _import_training()
        plan, pixels = (
            training.Plan(**self._checked_settings()),
            Pixels.from_records(X, self.shape),
        )
        aside_rows, training_rows = self._split_rows(len(X), rng)
        targets = training.LOSSES[self.loss].targets(codes[training_rows])
        self.params_, self.stats_ = training.train(
            plan,
            lambda rows: pixels.images(X[training_rows[rows]]),
            targets.values,
            pixels.shape,
            rng,
        )
        self.pixels_, self.range_ = pixels._asdict(), targets.range
        self.chosen_, self.tried_ = {}, []
        if len(aside_rows):
            self._set_left_out(
                lambda: LeftOutVotes(aside_rows, self.votes(X[aside_rows]))
            )
        else:
            self._set_left_out(None)
        return self

    def _split_rows(self, n: int, rng: np.random.Generator) -> tuple[Index, Index]:
        """Return the rows set aside, and those to learn from."""
        if not 0 <= self.aside < 1:
            raise UserError(
                f"aside is {validate.format_value(self.aside)}; it must be a share in"
                " [0, 1)."
            )
        order = rng.permutation(n)
        first = min(n - 1, round(self.aside * n))
        return np.sort(order[:first]), np.sort(order[first:])

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

    def _checked_settings(self) -> dict[str, Any]:
        validate.one_of(ARCHITECTURES, architecture=self.architecture)
        validate.one_of(LOSSES, loss=self.loss)
        if self.width is not None:
            validate.at_least(1, width=self.width)
        return {
            "architecture": self.architecture,
            "loss": self.loss,
            "epochs": validate.at_least(1, epochs=self.epochs),
            "batch": validate.at_least(1, batch=self.batch),
            "rate": validate.positive(rate=self.rate),
            "width": self.width,
        }


def _import_training() -> ModuleType:
    """Return the module that runs JAX; without the extra a UserError."""
    try:
        return import_module("curvote.labels.neural.training")
    except ImportError as error:
        raise UserError(
            f"learner neural needs {error.name}, which is not installed: pip install"
            " 'curvote[neural]'."
        ) from None
