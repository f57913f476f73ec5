"""Stage exchange: every server sends its classifier; each looks at what it received."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.federation.faults import apply_faults
from curvote.federation.offers import (
    MAX_LENGTH_RATIO,
    MAX_WEIGHT_RATIO,
    DroppedOffer,
    Offer,
    accept_offers,
)
from curvote.protocols.classifiers import average_ensemble


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the number of servers, their faults, and the limits."""
    return {
        "servers": params["servers"],
        "faults": {str(k): fault for k, fault in _server_faults(params).items()},
        "absurd": MAX_LENGTH_RATIO,
        "longest": MAX_WEIGHT_RATIO,
    }


def block(many: Sequence[StageContext]) -> Iterator[Rows]:
    """Yield the table ``offers``: what a server has of each server, or why not.

    The servers of a replicate stand together: what they send is made once.
    """
    for replicate, servers in groupby(many, lambda context: context.place[:-1]):
        first, *rest = servers
        if first.params["federation.split"] == "single":
            offers = [_own_offer(context) for context in (first, *rest)]
            yield from ({"offers": _offer_rows([offer], [])} for offer in offers)
            continue
        numbers = range(first.params["servers"])
        offers = [
            _own_offer(first.at_place((*replicate, server))) for server in numbers
        ]
        for context in (first, *rest):
            yield {"offers": _receive_offers(offers, context)}


def _server_faults(params: Params) -> Mapping[int, str]:
    """Return ``federation.faults`` by number of server, which JSON writes as text."""
    return {int(k): fault for k, fault in params["federation.faults"].items()}


def _own_offer(context: StageContext) -> Offer:
    """Return the average of a server's reversed weak classifiers (MRMA, eq. 11)."""
    weak, ensemble = (
        context.rows("train", "weak"),
        context.rows("aggregate", "ensemble"),
    )
    line = average_ensemble((weak["coef"], weak["intercept"]), ensemble)
    return Offer(context.place[-1], *line, ensemble["weight"])


def _receive_offers(offers: Sequence[Offer], context: StageContext) -> Columns:
    own_offer = offers[context.place[-1]]
    other_offers = (offer for offer in offers if offer is not own_offer)
    return _offer_rows(
        *accept_offers(
            apply_faults(other_offers, _server_faults(context.params)),
            own_offer,
            len(offers),
        )
    )


def _offer_rows(accepted: Sequence[Offer], dropped: Sequence[DroppedOffer]) -> Columns:
    """Return a row for each server: its offer, or why it was dropped."""
    by_server = {offer.server: offer for offer in accepted}
    reasons = {drop.server: drop.reason for drop in dropped if drop.server is not None}
    servers = sorted({*by_server, *reasons})
    empty_offer = replace(accepted[0], coef=0 * accepted[0].coef, intercept=0.0)
    offers = [by_server.get(server, empty_offer) for server in servers]
    return {
        "sender": np.array(servers),
        "coef": np.array([offer.coef for offer in offers]),
        "intercept": np.array([offer.intercept for offer in offers]),
        "accepted": np.array([server in by_server for server in servers]),
        "reason": np.array(
            [reasons.get(server, "") for server in servers], dtype=object
        ),
    }
