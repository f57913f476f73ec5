"""Before a release: what each source adds by r of (11); automatic form and weights.

The automatic choice is made from public facts alone.
What is known before anything is released: how many features and classes there are, how
many records each server has and what it spends. From these follows v, the variance of a
number of the pooled class means,

    1/v = sum_j 1/(1/(4 n_j) + sigma_j^2/n_j^2),

sigma_j the noise of sums that one record moves by sqrt 2. Measured with the simulation
of paper 002 (two features), the four hospitals (seven) and phonemes (eight and twelve):
cells see any boundary and win where they are few, a line wins beyond, and a second
moment pays once p v is small, p the number of coefficients.
"""

import math
from collections import namedtuple
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.mechanisms.gaussian import GaussianNoise
from curvote.systems.transfer.method.phases import Servers, target_level
from curvote.systems.transfer.method.task import Level, PublicSetup

# r falls by so much: about as much as (1 - share)^-(2 beta + d) times as many records.
NOTICEABLE_FALL = 0.01


@dataclass(frozen=True)
class Server:
    """One possible sender: public size n, epsilon (inf: public), gamma, delta.

    ``delta`` defaults to n^-2. UserError for n below 2 and whatever is not above 0.
    """

    name: str
    n: int
    epsilon: float
    gamma: float = 1.0
    delta: float | None = None

    def __post_init__(self) -> None:
        validate.at_least(2, n=self.n)
        validate.positive(gamma=self.gamma)
        if not self.epsilon > 0:
            raise UserError(f"epsilon is {self.epsilon}; it must be above 0.")
        if self.delta is not None:
            validate.fraction(delta=self.delta)

    @property
    def spent(self) -> float:
        """Delta of the server's release."""
        return self.n**-2.0 if self.delta is None else self.delta


@dataclass(frozen=True)
class Gain:
    """Radius r that the target reaches with some sources, and its value.

    ``risk`` is the rate of excess risk, relative to the target's alone; ``records`` how
    many records of its own, at its own epsilon, would give the same r.
    """

    r: float
    risk: float
    records: float


@dataclass(frozen=True)
class Offer:
    """Gain from one source at its own epsilon and without noise.

    ``least_epsilon`` is the least at which it lowers r by ``NOTICEABLE_FALL``; None
    where it does not even as a public server.
    """

    server: Server
    gain: Gain
    if_public: Gain
    least_epsilon: float | None

    @property
    def noticed(self) -> bool:
        """Whether the source adds something noticeable at its own epsilon."""
        return self.least_epsilon is not None and (
            self.server.epsilon >= self.least_epsilon
        )


@dataclass(frozen=True)
class Advice:
    """Gains of a target alone, with each source, and with all of them."""

    target: Server
    beta: float
    d: int
    alpha: float
    alone: Gain
    offers: tuple[Offer, ...]
    together: Gain

    def document(self) -> dict[str, Any]:
        """Return everything as plain JSON values; a public epsilon is null."""
        return {
            "target": _server_json(self.target),
            "beta": self.beta,
            "features": self.d,
            "alpha": self.alpha,
            "noticed": NOTICEABLE_FALL,
            "alone": asdict(self.alone),
            "sources": [
                _server_json(offer.server)
                | asdict(offer.gain)
                | {
                    "if_public": asdict(offer.if_public),
                    "least_epsilon": offer.least_epsilon,
                    "noticed": offer.noticed,
                }
                for offer in self.offers
            ],
            "together": asdict(self.together),
        }


def advise(
    servers: Sequence[Server], d: int, beta: float = 1.0, alpha: float = 1.0
) -> Advice:
    """Return the gains from each source for the first server, the target.

    r solves (11); its right-hand side has the least delta of all servers, with or
    without a source, so that a larger source does not cost by its smaller delta.
    ``d`` features, smoothness ``beta`` in (0, 1], margin ``alpha``. UserError for
    fewer than two servers, or a name that stands twice.
    """
    names = [server.name for server in servers]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise UserError(f"server {twice[0]} stands {names.count(twice[0])} times.")
    if len(servers) < 2:
        raise UserError("name the target and at least one source.")
    target, *sources = servers
    spent = [server.epsilon for server in servers], [server.spent for server in servers]
    level, power = target_level(*spent, len(servers)), 2 * beta + d

    def with_sources(*some: Server) -> Servers:
        """Return the target and some sources as the `Servers` of (11)."""
        every = (target, *some)
        sizes = [server.n for server in every], [server.epsilon for server in every]
        return Servers.of(*sizes, [server.gamma for server in every], beta, d)

    alone = with_sources().radius(level)

    def gain(*some: Server) -> Gain:
        """Return the gain of the target with these sources."""
        r = with_sources(*some).radius(level)
        free = level * r**-power
        private = math.sqrt(level * r ** -(power + d)) / target.epsilon
        risk = float((r / alone) ** (beta * (1 + alpha)))
        return Gain(r, risk, float(max(free, private)))

    offers = []
    for source in sources:
        # The least epsilon at which it lowers r noticeably, if any.
        log_r = math.log((1 - NOTICEABLE_FALL) * alone)
        pair, least = with_sources(source), None
        target_term = pair.log_precision(log_r)[0] + pair.power[0] * log_r
        missing = math.log(level - float(np.exp(target_term)))
        missing -= pair.power[1] * log_r
        if missing <= math.log(source.n):
            least = float(math.exp((missing - d * log_r) / 2) / source.n)
        public = Server(source.name, source.n, math.inf, source.gamma, source.delta)
        offers.append(Offer(source, gain(source), gain(public), least))
    together = gain(*sources)
    return Advice(target, beta, d, alpha, gain(), tuple(offers), together)


def _server_json(server: Server) -> dict[str, Any]:
    """Return a server as plain JSON values."""
    public = math.isinf(server.epsilon)
    return {
        "name": server.name,
        "n": server.n,
        "epsilon": None if public else server.epsilon,
        "gamma": server.gamma,
        "delta": None if public else server.spent,
    }


# The most features that cells are taken for, and their pitch: quarters of the range
# cost more noise than they show.
MOST_CELL_FEATURES: Final = 3
PITCH: Final = 0.5
# How a line is asked for (share: even seeds of the court), unless pairs are too many.
LINE: Final = {"arm": "joint", "share": 0.8, "centring": "sums"}
# Steps to 1, so fine that the grid adds nothing to the noise.
_UNIT: Final = 1 << 20
_CELLS: Final = 8192
_GRIDS: Final = 400


# Chosen ``release`` and ``params`` of a task, and ``weights`` of `combine`. ``reason``
# says why, in a sentence with its numbers.
Choice = namedtuple("Choice", "release params weights reason")


def choose_form(setup: PublicSetup) -> Choice:
    """Return the form and weights for public facts; unknown sizes are a UserError."""
    sizes, d = setup.require_sizes(), setup.d
    v = pooled_variance(sizes, setup.levels)
    weights = "aligned" if len(sizes) > 1 else "adapt_tar"
    if d <= MOST_CELL_FEATURES:
        cells_per_grid = (math.ceil(1 / PITCH) + 1) ** d
        grids = min(_GRIDS, max(1, _CELLS // (setup.classes * cells_per_grid)))
        params = {"order": d, "pitch": PITCH, "grids": grids, "cells": _CELLS}
        params["centring"] = "sums"
        reason = f"{d} features are few: cells show any boundary (noise {v:.2g})"
        return Choice("cells", params, weights, reason)
    many = d * (d + 1) > _CELLS
    reason = (
        f"{d} features are too many for cells, so a line parts the classes; servers"
        f" {'do not' if many else 'also'} release how features go together"
    )
    params = LINE | {"arm": "mean"} if many else LINE
    return Choice("moments", params, weights, f"{reason} (noise {v:.2g})")


def pooled_variance(sizes: Mapping[str, int], levels: Mapping[str, Level]) -> float:
    """Return v, the variance of a number of the pooled class means."""
    precisions = []
    for name, n in sizes.items():
        variance = 1 / (4 * n)  # of a class mean of one server
        if levels[name].noised:
            budget = levels[name].budget(n)
            noise = GaussianNoise(_UNIT * math.sqrt(2), budget.epsilon, budget.delta)
            variance += (noise.sigma / _UNIT / n) ** 2
        precisions.append(1 / variance)
    return 1 / math.fsum(precisions)
