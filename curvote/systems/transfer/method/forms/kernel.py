"""Form `kernel`: the sum of (Y - c) phi over the records, at each of some bandwidths.

Paper 002, equations (1), (7) and (16), for two classes: Y is 1 for the second, c the
server's own rate of it, or 1/2. Bandwidths are released jointly, by one mechanism:
the features at all of them are one vector of norm sqrt(|H|).

What replacing one record moves at one bandwidth, features of norm 1, by centre:

- ``half``: (Y' - 1/2) phi' - (Y - 1/2) phi, at most 1/2 + 1/2 = 1. (A public centre p
  where inner products are nowhere negative: |phi' - phi| <= sqrt 2 if Y stays, else
  |(1 - p) phi' + p phi| <= 1, so max(1, sqrt 2 max(p, 1 - p)); at p = 1/2 this is 1.)
- ``own``: let F be the sum of phi over the n - 1 others and r the rate. If Y stays, the
  sum moves by (Y - r)(phi' - phi). If Y turns from 0 to 1, r' = r + 1/n, and it moves
  by (1 - r') phi' + r phi - F / n: the first two are a vector of norm 1 - 1/n at most,
  F / n another. Where inner products are nowhere negative (every grid), vectors of
  norm 1 are at most sqrt 2 apart: sqrt 2. Waves (``gaussian``) may be opposed: 2.

Numbers are rounded to steps of 2^-12 of a record's entry, by at most half a step each:
the sums of two neighbours move sqrt(length) steps more at most (`ROUNDING_FACTOR`).
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.chain.settings import Strict, WholeNumber
from curvote.mechanisms.gaussian import DiscreteGaussian, GaussianNoise
from curvote.systems.transfer.method import features, weights
from curvote.systems.transfer.method.task import (
    Array,
    Contrasts,
    Form,
    NoisedSums,
    PublicSetup,
    Steps,
    Task,
)

# Steps to the entry of one record at one grid or frequency.
UNIT = 1 << 12
# Two roundings by half a step, and what floating point may add for 10^7 records.
ROUNDING_FACTOR = 1.01

Bandwidth = Annotated[float, Field(ge=2**-20, le=64)]


Features = features.Grids | features.Waves


class Parameters(Strict):
    """``span`` is the side of the cube that features are scaled to.

    ``bandwidths`` are in its units, ``cells`` the most numbers of a release, over
    all bandwidths, ``grids`` how many grids (frequencies for ``gaussian``: two numbers
    each) there are for each bandwidth. ``histogram`` and ``jittered`` are one grid, at
    the bounds or shifted: what the paper compares with.
    """

    kernel: Literal["triangular", "gaussian", "histogram", "jittered"] = "triangular"
    span: Annotated[float, Field(ge=2**-20, le=64)] = 1.0
    bandwidths: list[Bandwidth] = Field(default=[1.0], min_length=1, max_length=32)
    centre: Literal["own", "half"] = "own"
    grids: WholeNumber = 400
    cells: WholeNumber = 8192


class Kernel(Form):
    """Form with the centred sum at each bandwidth, the widest first."""

    name = "kernel"
    Parameters = Parameters
    by_bandwidth = True
    # A centred sum says nothing of how frequent the classes are.
    decides = "balanced"

    def plan_params(self, params: dict[str, Any], setup: PublicSetup) -> dict[str, Any]:
        """Return ``params`` with the bandwidths of section 5, if none are stated."""
        if "bandwidths" in params:
            return params
        sizes = setup.require_sizes()
        epsilons = [weights.epsilon_value(setup.levels[name].epsilon) for name in sizes]
        return params | {
            "bandwidths": weights.bandwidth_grid([*sizes.values()], epsilons, setup.d)
        }

    def settle_params(self, task: Task, params: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters; more than two classes or too few cells: UserError."""
        if len(task.classes) != 2:
            raise UserError(
                f"release kernel is for two classes, the task has {len(task.classes)}:"
                " a centred sum holds one contrast. Take `cells` or `moments`."
            )
        if params["kernel"] in {"histogram", "jittered"}:
            params = params | {"grids": 1}
        widths = params["bandwidths"]
        if any(narrow >= wide for wide, narrow in pairwise(widths)):
            raise UserError(f"bandwidths are {widths}; they must fall.")
        least = 2 * params["grids"] * len(widths)
        if params["cells"] < least:
            raise UserError(
                f"cells is {params['cells']}; {params['grids']} grids at"
                f" {len(widths)} bandwidths take {least} at least."
            )
        return params

    def features(self, task: Task) -> list[Features]:
        """Return the public features at each bandwidth."""
        p, d = task.params, task.d
        pitches = [h / p["span"] for h in p["bandwidths"]]
        if p["kernel"] == "gaussian":
            return [features.Waves(d, p["grids"], h, task.seed) for h in pitches]
        cells_left, per_bandwidth = p["cells"] // p["grids"], list[Features]()
        kind = features.Histogram if p["kernel"] == "histogram" else features.Grids
        # Coarse grids have few cells: what they leave is for the finer ones.
        for place, pitch in enumerate(pitches):
            buckets = cells_left // (len(pitches) - place)
            grids = kind(d, p["grids"], d, pitch, buckets, task.seed)
            cells_left -= grids.cells
            per_bandwidth.append(grids)
        return per_bandwidth

    def parts(self, task: Task) -> float:
        """Return sqrt(|H|), the factor that several bandwidths cost in epsilon."""
        return math.sqrt(len(task.params["bandwidths"]))

    def length(self, task: Task) -> int:
        """Return the number of cells at all bandwidths."""
        return sum(phi.length for phi in self.features(task))

    def unit(self, task: Task) -> float:
        """Return 2^12 sqrt(grids): the norm at one bandwidth of a record with Y = 1."""
        return UNIT * math.sqrt(task.params["grids"])

    def sensitivity(self, task: Task) -> float:
        """Return the sensitivity of the module's proof, with rounding."""
        p = task.params
        at_one = 2.0 if p["kernel"] == "gaussian" else math.sqrt(2)
        if p["centre"] == "half":
            at_one = 1.0
        exact = self.unit(task) * math.sqrt(len(p["bandwidths"])) * at_one
        return exact + ROUNDING_FACTOR * math.sqrt(self.length(task))

    def sums(self, task: Task, cube: Array, codes: Steps) -> Steps:
        """Return the centred sums, rounded once."""
        ill = codes == 1
        centre = ill.mean() if task.params["centre"] == "own" else 0.5
        sums = [
            phi.counts(cube[ill]) * (1 - centre) - phi.counts(cube[~ill]) * centre
            for phi in self.features(task)
        ]
        return np.asarray(np.rint(np.concatenate(sums) * UNIT).astype(np.int64))

    def weights(self, task: Task, values: Array) -> Array:
        """Return the sum of (Y - c) phi over the records, (1, length), as released."""
        return np.asarray(values[np.newaxis] / self.unit(task))

    def product(self, task: Task, cube: Array, weights: Array) -> Array:
        """Return the sum over the bandwidths of phi(x) . w, (q, r)."""
        return np.asarray(self.multiply_all(task, cube, weights).sum(axis=0))

    def multiply_all(self, task: Task, cube: Array, weights: Array) -> Array:
        """Return phi(x) . w for queries (q, d) and rows (r, length): (|H|, q, r)."""
        every = self.features(task)
        ends = np.cumsum([phi.length for phi in every])[:-1]
        parts = np.split(weights, ends, axis=1)
        products = [phi.product(cube, w) for phi, w in zip(every, parts, strict=True)]
        return np.stack(products)

    def has_several_bandwidths(self, task: Task) -> bool:
        """Return whether a release has several bandwidths to choose from."""
        return len(task.params["bandwidths"]) > 1

    def side(self, task: Task, release: NoisedSums) -> Contrasts:
        """Return the centred mean at each bandwidth; it holds no class rates."""
        rows = main = self.weights(task, release.values.astype(np.float64) / release.n)
        widest = self.features(task)[0]
        if isinstance(widest, features.Grids):
            axes, _ = features.principal_directions(widest)
            main = np.asarray(rows[:, : widest.length] @ axes)
        epsilon = weights.epsilon_value(task.servers[release.server].epsilon)
        return weights.KernelSide(
            server=release.server,
            n=release.n,
            rates=np.full(2, 0.5),
            rows=rows,
            main=main,
            noise=(release.sigma / self.unit(task) / release.n) ** 2,
            epsilon=epsilon,
            alone=epsilon / self.parts(task),
            widths=tuple(task.params["bandwidths"]),
            d=task.d,
        )


@dataclass(frozen=True)
class PrintedNoise(GaussianNoise):
    """Gaussian noise of the published standard deviation: (9), (16).

    ``parts`` is |H|. ``sensitivity`` is the true one, so that what is told of the noise
    is what it delivers.
    """

    unit: float
    parts: float = 1.0

    def __post_init__(self) -> None:
        delta, epsilon = self.delta / self.parts, self.epsilon / self.parts
        sigma = self.unit * math.sqrt(2 * math.log(2 / delta)) / epsilon
        object.__setattr__(self, "law", DiscreteGaussian(0.5 / sigma**2))


class Printed(Kernel):
    """Kernel form with the published noise, for studies only."""

    name = "printed"
    study = True

    def parts(self, task: Task) -> float:
        """Return |H|: each bandwidth has that part of epsilon."""
        return float(len(task.params["bandwidths"]))

    def noise(self, task: Task, budget: Budget) -> GaussianNoise:
        """Return the noise of equation (16)."""
        law = budget.epsilon, budget.delta, self.unit(task), self.parts(task)
        return PrintedNoise(self.sensitivity(task), *law)
