"""What a form of a release must say: sums over records, and what one record moves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from curvote.errors import UserError
from curvote.mechanisms.gaussian_noise import GaussianNoise
from curvote.privacy import Budget
from curvote.shrinkage import kept
from curvote.strict_json import said

if TYPE_CHECKING:
    from curvote.transfer.releasing import Release
    from curvote.transfer.setup import Setup
    from curvote.transfer.sides import Side
    from curvote.transfer.task import Task

Array = NDArray[np.float64]
Steps = NDArray[np.int64]
Refine = Callable[[Array], Array]


class Form(ABC):
    """Whole numbers that are summed over the records of a server.

    Records come as (n, d) in [0, 1]^d, labels as codes (n,). The numbers of a release
    are ``values`` (length,); divided by ``unit`` they are inner products' weights on
    the public features phi(x) of a record, |phi| = 1: `weights` reads them as rows
    (r, m) and `product` multiplies queries with such rows.
    """

    name: str
    Parameters: type[BaseModel]
    # The module whose rules weigh the servers (`curvote.transfer.weighing`).
    rules: ClassVar[str] = "curvote.transfer.weighing"
    # How such a release must decide, whatever is asked.
    decides: ClassVar[str | None] = None
    # True: not private as it claims; no client answers such a task.
    study: ClassVar[bool] = False

    def filled(self, task: Task) -> dict[str, Any]:
        """Return the parameters of a task with defaults filled in; checked."""
        return self.settled(task, self.checked(task.params))

    def checked(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters with defaults; unknown or wrong ones are a UserError."""
        try:
            return self.Parameters.model_validate(dict(params)).model_dump(mode="json")
        except ValidationError as error:
            raise UserError(f"release {self.name}: {said(error)}.") from None

    def planned(self, params: dict[str, Any], setup: Setup) -> dict[str, Any]:
        """Return ``params`` with what follows from all servers together filled in."""
        return params

    def settled(self, task: Task, params: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters as they stand for this task's features and classes."""
        return params

    @abstractmethod
    def length(self, task: Task) -> int:
        """Return how many numbers a release has."""

    @abstractmethod
    def unit(self, task: Task) -> float:
        """Return how many steps a feature vector of norm 1 is long."""

    @abstractmethod
    def sensitivity(self, task: Task) -> float:
        """Return the largest L2 distance, in steps, of the sums of two neighbours."""

    def noise(self, task: Task, budget: Budget) -> GaussianNoise:
        """Return the noise of a release at ``budget``."""
        return GaussianNoise(self.sensitivity(task), budget.epsilon, budget.delta)

    @abstractmethod
    def sums(self, task: Task, cube: Array, codes: Steps) -> Steps:
        """Return the numbers of a table, (length,), without noise."""

    @abstractmethod
    def weights(self, task: Task, values: Array) -> Array:
        """Return sums of phi over records, (r, m), as released."""

    @abstractmethod
    def product(self, task: Task, cube: Array, weights: Array) -> Array:
        """Return phi(x) . w for queries (q, d) and rows (r, m): (q, r)."""

    def products(self, task: Task, cube: Array, weights: Array) -> Array:
        """Return `product` at each of the release's bandwidths, (B, q, r); B is 1."""
        return self.product(task, cube, weights)[np.newaxis]

    def several(self, task: Task) -> bool:
        """Say whether a release has several bandwidths to choose from."""
        return False

    @abstractmethod
    def side(self, task: Task, told: Release) -> Side:
        """Return what one server's release says of the classes."""

    def odds(self, task: Task, main: Array, noise: float) -> float:
        """Return how many log-odds a unit of a score is.

        ``main`` (R, k) are the differences that make it, ``noise`` the variance of
        each of their numbers. Without it only `balanced` decisions can be made.
        """
        raise UserError(f"release {self.name} tells no rates: it decides balanced.")

    def constant(self, task: Task) -> Array:
        """Return weights (m,) of a function that is public and nowhere negative."""
        raise UserError(f"release {self.name} tells no rates: it decides balanced.")

    def refined(self, task: Task, sides: Sequence[Side], shares: Array) -> Refine:
        """Return what is done to contrasts (r, m) that are in use: nothing.

        ``shares`` (J,) are the weights of the ``sides``.
        """
        return _as_they_are


class ClassSums(Form):
    """A form whose `weights` are the sums of phi over each class."""

    def side(self, task: Task, told: Release) -> Side:
        """Return the contrasts of the classes."""
        from curvote.transfer.sides import of_class_sums

        return of_class_sums(self, task, told)

    @abstractmethod
    def reference(self, task: Task, weights: Array) -> Array:
        """Return phi . w for the public reference distribution's mean phi, (r,)."""

    @abstractmethod
    def constant(self, task: Task) -> Array:
        """Return weights (m,) of the function that contrasts lose, of `reference` 1."""

    @abstractmethod
    def main(self, task: Task) -> Array:
        """Return the directions (m, k), of norm 1, in which queries differ most."""

    @abstractmethod
    def spreads(self, task: Task) -> Array:
        """Return the variance (k,) of public reference points along each of them."""

    def odds(self, task: Task, main: Array, noise: float) -> float:
        """Return 1/v, v the variance within a class along the differences.

        Log-odds are <mu_1 - mu_0, phi>/v for classes of equal spread; differences are
        shrunk by their noise first.
        """
        signal = kept(main, noise * main.size)
        if not signal:
            return 0.0
        weight = (main**2).sum(axis=0)
        return signal * float(weight.sum() / (weight @ self.spreads(task)))


def _as_they_are(rows: Array) -> Array:
    return rows
