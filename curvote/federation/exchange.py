"""Stage exchange: every server sends its classifier; each looks at what it received."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from curvote.chain.stage import Columns, Facts, Inputs, Params
from curvote.federation.faults import sent
from curvote.federation.offers import ABSURD, LONGEST, Dropped, Offer, accept
from curvote.federation.poll import faults, place
from curvote.protocols.stage import Tables
from curvote.server.averaging import average


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return how many servers there are, who answers badly and what is refused."""
    return {
        "servers": params["servers"],
        "faults": {str(k): fault for k, fault in faults(params).items()},
        "absurd": ABSURD,
        "longest": LONGEST,
    }


def block(
    instances: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``offers``: what each server has of each server, or why not."""
    if params["federation.split"] == "single":
        alone = (_own(place(params, i)[1], i, inputs) for i in instances)
        return {"offers": [_rows([own], []) for own in alone]}
    made: dict[int, list[Offer]] = {}
    tables = []
    for instance in instances:
        replicate, server = place(params, instance)
        if replicate not in made:
            made[replicate] = _made(replicate, inputs, params)
        tables.append(_received(made[replicate], server, params))
    return {"offers": tables}


def _made(replicate: int, inputs: Inputs, params: Params) -> list[Offer]:
    """Return the own classifier of every server of a replicate."""
    servers = range(params["servers"])
    return [_own(k, replicate * len(servers) + k, inputs) for k in servers]


def _own(server: int, instance: int, inputs: Inputs) -> Offer:
    """Return the average of a server's reversed weak classifiers (MRMA, eq. 11)."""
    weak = inputs["train"].columns("weak", instance)
    ensemble = inputs["aggregate"].columns("ensemble", instance)
    turn = np.where(ensemble["reversed"], -1.0, 1.0)
    final = average(weak["coef"], weak["intercept"], turn * ensemble["weight"])
    return Offer(server, *final, ensemble["weight"])


def _received(made: Sequence[Offer], server: int, params: Params) -> Columns:
    own = made[server]
    others = (offer for offer in made if offer is not own)
    return _rows(*accept(sent(others, faults(params)), own, len(made)))


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
