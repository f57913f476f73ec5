"""Is it worth asking this server? What each source adds to the target, by r."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from curvote.reporting.section import Section
from curvote.reporting.sections.transfer.shown import near_one, sizes, spent
from curvote.run.results import RunView
from curvote.transfer.advice import Advice, Gain, Offer, Server, advise
from curvote.transfer.task import Level


@dataclass(frozen=True)
class Row:
    """What the target has with a source: r, excess risk, records of its own alike."""

    who: str
    records: str
    epsilon: str
    r: str
    risk: str
    like: str
    begins: str


@dataclass(frozen=True, eq=False)
class Worth(Section):
    """``advice`` at the public sizes and budgets of a run."""

    advice: Advice

    name: ClassVar[str] = "worth"
    place: ClassVar[str] = "end"

    @property
    def rows(self) -> list[Row]:
        """The target alone, with each source, with all."""
        return list(_rows(self.advice))

    @property
    def promised(self) -> bool:
        """Whether r is below 1, so that rates say something."""
        return self.advice.together.r < 1

    @property
    def command(self) -> str:
        """What prints the same on the terminal, for other sizes and budgets."""
        every = (self.advice.target, *(offer.server for offer in self.advice.offers))
        named = (f"--server {one.name}:{one.n}:{_epsilon(one)}" for one in every)
        return f"curvote advise {' '.join(named)} --features {self.advice.d}"


def _rows(advice: Advice) -> Iterator[Row]:
    target = advice.target
    yield _row(f"{target.name} alone", target, advice.alone)
    for offer in advice.offers:
        yield _row(
            f"with {offer.server.name}", offer.server, offer.gain, _begins(offer)
        )
    yield _row("with all of them", None, advice.together)


def _row(who: str, server: Server | None, gain: Gain, begins: str = "") -> Row:
    own = (f"{server.n:,}", _epsilon(server)) if server else ("", "")
    known = f"{gain.r:.3f}", f"{100 * gain.risk:.0f} %", f"{gain.records:,.0f}"
    return Row(who, *own, *known, begins)


def _begins(offer: Offer) -> str:
    least = offer.least_epsilon
    return "never" if least is None else f"from {least:.2g} on"


def _epsilon(server: Server) -> str:
    return "public" if math.isinf(server.epsilon) else f"{server.epsilon:g}"


def gather(views: Sequence[RunView], _: pd.DataFrame) -> Worth | None:
    """Return what each source adds at the epsilon that the page speaks of."""
    view = near_one(views)[0]
    levels, known = spent(view), sizes(view)
    target = view.setting("target")
    order = sorted(known, key=lambda name: name != target)
    servers = [_server(name, known[name], levels[name]) for name in order]
    if len(servers) < 2 or min(known.values()) < 2 or order[0] != target:
        return None
    return Worth(advise(servers, view.facts("project")["d"]))


def _server(name: str, n: int, level: Level) -> Server:
    epsilon = math.inf if isinstance(level.epsilon, str) else level.epsilon
    return Server(name, n, epsilon, delta=level.delta)
