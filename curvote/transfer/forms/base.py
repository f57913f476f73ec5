"""Base classes of the forms of a release: sums over records, and their sensitivity."""

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
from curvote.shrinkage import shrink_factor
from curvote.strict_json import describe_errors

if TYPE_CHECKING:
    from curvote.transfer.releasing import Release
    from curvote.transfer.setup import PublicSetup
    from curvote.transfer.sides import Contrasts
    from curvote.transfer.task import Task

Array = NDArray[np.float64]
Steps = NDArray[np.int64]
Refine = Callable[[Array], Array]


class Form(ABC):
    """Form of a release: whole numbers summed over the records of a server.

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

    def fill_params(self, task: Task) -> dict[str, Any]:
        """Return the checked parameters of a task with defaults filled in."""
        return self.settle_params(task, self.check_params(task.params))

    def check_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters with defaults; unknown or wrong ones are a UserError."""
        try:
            return self.Parameters.model_validate(dict(params)).model_dump(mode="json")
        except ValidationError as error:
            raise UserError(f"release {self.name}: {describe_errors(error)}.") from None

    def plan_params(self, params: dict[str, Any], setup: PublicSetup) -> dict[str, Any]:
        """Return ``params`` completed by the public facts of all servers."""
        return params

    def settle_params(self, task: Task, params: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters resolved for this task's features and classes."""
        return params

    @abstractmethod
    def length(self, task: Task) -> int:
        """Return the number of numbers of a release."""

    @abstractmethod
    def unit(self, task: Task) -> float:
        """Return the length, in steps, of a feature vector of norm 1."""

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

    def multiply_all(self, task: Task, cube: Array, weights: Array) -> Array:
        """Return `product` at each of the release's bandwidths, (B, q, r); B is 1."""
        return self.product(task, cube, weights)[np.newaxis]

    def has_several_bandwidths(self, task: Task) -> bool:
        """Return whether a release has several bandwidths to choose from."""
        return False

    @abstractmethod
    def side(self, task: Task, release: Release) -> Contrasts:
        """Return the contrasts of the classes in one server's release."""

    def odds(self, task: Task, main: Array, noise: float) -> float:
        """Return the log-odds per unit of a score.

        ``main`` (R, k) are the differences that make it, ``noise`` the variance of
        each of their numbers. Without it only `balanced` decisions can be made.
        """
        raise UserError(f"release {self.name} tells no rates: it decides balanced.")

    def constant(self, task: Task) -> Array:
        """Return weights (m,) of a public, nowhere negative function."""
        raise UserError(f"release {self.name} tells no rates: it decides balanced.")

    def refined(self, task: Task, sides: Sequence[Contrasts], shares: Array) -> Refine:
        """Return the map applied to contrasts (r, m) in use: the identity.

        ``shares`` (J,) are the weights of the ``sides``.
        """
        return _identity


class ClassSums(Form):
    """Base of forms whose `weights` are the sums of phi over each class."""

    def side(self, task: Task, release: Release) -> Contrasts:
        """Return the contrasts of the classes."""
        from curvote.transfer.sides import class_sum_contrasts

        return class_sum_contrasts(self, task, release)

    @abstractmethod
    def reference(self, task: Task, weights: Array) -> Array:
        """Return phi . w, (r,), for the mean phi of the public reference."""

    @abstractmethod
    def constant(self, task: Task) -> Array:
        """Return weights (m,) of the constant part that contrasts lose."""

    @abstractmethod
    def main(self, task: Task) -> Array:
        """Return the directions (m, k), of norm 1, in which queries differ most."""

    @abstractmethod
    def direction_variances(self, task: Task) -> Array:
        """Return the variance (k,) of public reference points along each of them."""

    def odds(self, task: Task, main: Array, noise: float) -> float:
        """Return 1/v, v the variance within a class along the differences.

        Log-odds are <mu_1 - mu_0, phi>/v for classes of equal spread; differences are
        shrunk by their noise first.
        """
        signal = shrink_factor(main, noise * main.size)
        if not signal:
            return 0.0
        energies = (main**2).sum(axis=0)
        return signal * float(
            energies.sum() / (energies @ self.direction_variances(task))
        )


def _identity(rows: Array) -> Array:
    """Return the rows unchanged."""
    return rows
