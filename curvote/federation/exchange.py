"""Stage exchange: every server sends its classifier; each looks at what it received."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from curvote.chain.stage import Columns, Facts, Here, Inputs, Params, Rows
from curvote.federation.faults import sent
from curvote.federation.offers import ABSURD, LONGEST, Dropped, Offer, accept
from curvote.protocols.classifiers import averaged


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return how many servers there are, who answers badly and what is refused."""
    return {
        "servers": params["servers"],
        "faults": {str(k): fault for k, fault in _faults(params).items()},
        "absurd": ABSURD,
        "longest": LONGEST,
    }


def block(many: Sequence[Here]) -> Iterator[Rows]:
    """Yield the table ``offers``: what a server has of each server, or why not.

    The servers of a replicate stand together: what they send is made once.
    """
    for replicate, servers in groupby(many, lambda here: here.place[:-1]):
        first, *others = servers
        if first.params["federation.split"] == "single":
            made = [_own(here) for here in (first, *others)]
            yield from ({"offers": _rows([own], [])} for own in made)
            continue
        every = range(first.params["servers"])
        made = [_own(first.at((*replicate, server))) for server in every]
        for here in (first, *others):
            yield {"offers": _received(made, here)}


def _faults(params: Params) -> Mapping[int, str]:
    """Return ``federation.faults`` by number of server, which JSON writes as text."""
    return {int(k): fault for k, fault in params["federation.faults"].items()}


def _own(here: Here) -> Offer:
    """Return the average of a server's reversed weak classifiers (MRMA, eq. 11)."""
    weak, ensemble = here.rows("train", "weak"), here.rows("aggregate", "ensemble")
    line = averaged((weak["coef"], weak["intercept"]), ensemble)
    return Offer(here.place[-1], *line, ensemble["weight"])


def _received(made: Sequence[Offer], here: Here) -> Columns:
    own = made[here.place[-1]]
    others = (offer for offer in made if offer is not own)
    return _rows(*accept(sent(others, _faults(here.params)), own, len(made)))


def _rows(accepted: Sequence[Offer], dropped: Sequence[Dropped]) -> Columns:
    """Return one row for each server; of one that was dropped nothing but why."""
    kept = {offer.server: offer for offer in accepted}
    out = {drop.server: drop.reason for drop in dropped if drop.server is not None}
    servers = sorted({*kept, *out})
    nothing = replace(accepted[0], coef=0 * accepted[0].coef, intercept=0.0)
    offers = [kept.get(server, nothing) for server in servers]
    return {
        "sender": np.array(servers),
        "coef": np.array([offer.coef for offer in offers]),
        "intercept": np.array([offer.intercept for offer in offers]),
        "accepted": np.array([server in kept for server in servers]),
        "reason": np.array([out.get(server, "") for server in servers], dtype=object),
    }
