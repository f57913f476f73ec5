"""Value of each source for the target, by r."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from curvote.reporting.section import Section
from curvote.reporting.sections.transfer.shown import (
    nearest_to_one,
    server_levels,
    server_sizes,
)
from curvote.run.results import RunView
from curvote.transfer.advice import Advice, Gain, Offer, Server, advise
from curvote.transfer.task import Level


@dataclass(frozen=True)
class WorthRow:
    """Texts of a source: r, excess risk, equivalent records of the target."""

    who: str
    records: str
    epsilon: str
    r: str
    risk: str
    like: str
    begins: str


@dataclass(frozen=True, eq=False)
class AdviceSection(Section):
    """Section with the ``advice`` at the public sizes and budgets of a run."""

    advice: Advice

    name: ClassVar[str] = "worth"
    place: ClassVar[str] = "end"

    @property
    def rows(self) -> list[WorthRow]:
        """Rows of the target alone, with each source, with all."""
        return list(_worth_rows(self.advice))

    @property
    def promised(self) -> bool:
        """Whether r is below 1, so that rates say something."""
        return self.advice.together.r < 1

    @property
    def command(self) -> str:
        """Command that prints the same for other sizes and budgets."""
        servers = (self.advice.target, *(offer.server for offer in self.advice.offers))
        named = (
            f"--server {server.name}:{server.n}:{_format_epsilon(server)}"
            for server in servers
        )
        return f"curvote advise {' '.join(named)} --features {self.advice.d}"


def _worth_rows(advice: Advice) -> Iterator[WorthRow]:
    """Yield the rows of an advice."""
    target = advice.target
    yield _worth_row(f"{target.name} alone", target, advice.alone)
    for offer in advice.offers:
        yield _worth_row(
            f"with {offer.server.name}",
            offer.server,
            offer.gain,
            _format_least_epsilon(offer),
        )
    yield _worth_row("with all of them", None, advice.together)


def _worth_row(
    who: str, server: Server | None, gain: Gain, begins: str = ""
) -> WorthRow:
    """Return the texts of one gain."""
    size_texts = (f"{server.n:,}", _format_epsilon(server)) if server else ("", "")
    gain_texts = f"{gain.r:.3f}", f"{100 * gain.risk:.0f} %", f"{gain.records:,.0f}"
    return WorthRow(who, *size_texts, *gain_texts, begins)


def _format_least_epsilon(offer: Offer) -> str:
    """Return from which epsilon on a source is noticeable, as text."""
    least = offer.least_epsilon
    return "never" if least is None else f"from {least:.2g} on"


def _format_epsilon(server: Server) -> str:
    """Return a server's epsilon as text."""
    return "public" if math.isinf(server.epsilon) else f"{server.epsilon:g}"


def gather(views: Sequence[RunView], _: pd.DataFrame) -> AdviceSection | None:
    """Return the advice at the page's epsilon."""
    view = nearest_to_one(views)[0]
    levels, known_sizes = server_levels(view), server_sizes(view)
    target = view.setting("target")
    ordered_names = sorted(known_sizes, key=lambda name: name != target)
    servers = [
        _to_server(name, known_sizes[name], levels[name]) for name in ordered_names
    ]
    if len(servers) < 2 or min(known_sizes.values()) < 2 or ordered_names[0] != target:
        return None
    return AdviceSection(advise(servers, view.metadata("project")["d"]))


def _to_server(name: str, n: int, level: Level) -> Server:
    """Return a server of the advice from its size and level."""
    epsilon = math.inf if isinstance(level.epsilon, str) else level.epsilon
    return Server(name, n, epsilon, delta=level.delta)
