"""What servers send each other: one classifier each, looked at before it is used."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError

Array = NDArray[np.float64]

ABSURD = 1e3  # times the median length: no honest server's classifier
LONGEST = 10.0  # times the median length: what a classifier may count for
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Offer:
    """A server's own classifier: ``coef`` (d,), ``intercept``, and its ``weights``.

    ``weights`` (B,) are those of the server's weak classifiers in it: a distribution.
    """

    server: int
    coef: Array
    intercept: float
    weights: Array

    @property
    def length(self) -> float:
        """The Euclidean length of (coef, intercept); it may be infinite."""
        return math.hypot(*self.coef, self.intercept)

    def to_json(self) -> dict[str, Any]:
        """Return the offer as it goes over the wire: numbers and lists."""
        return {
            "server": self.server,
            "coef": self.coef.tolist(),
            "intercept": self.intercept,
            "weights": self.weights.tolist(),
        }


@dataclass(frozen=True)
class Dropped:
    """Who is left out (None: nobody can tell) and why, in words."""

    server: int | None
    reason: str


def accept(
    received: Iterable[object], own: Offer, servers: int
) -> tuple[list[Offer], list[Dropped]]:
    """Return the offers a server goes on with, in the servers' order, and the others.

    ``received`` holds what came from the other of ``servers`` servers, decoded JSON of
    any kind; ``own`` is always kept. Dropped, never an exception: what is no offer,
    names no server or one that was heard before, is not finite numbers, has
    another d, weights that are no distribution, all zeros, or a length over 1000 times
    or below a thousandth of the median length of all (the geometric one, so that of two
    servers neither decides alone); and who sent nothing.

    The average is over unnormalised coefficients (MRMA, equation 11), so a long offer
    counts for more than its weight says: one longer than ten times the median of those
    accepted is cut to that, which leaves its decisions as they are.
    """
    heard, dropped = _hear(received, own, servers)
    typical = _typical(heard)
    for server, offer in heard.items():
        if isinstance(offer, Offer) and offer is not own:
            heard[server] = _absurd(offer, typical) or offer
    dropped += [Dropped(k, why) for k, why in heard.items() if isinstance(why, str)]
    typical = _typical(heard)
    accepted = [heard[k] for k in sorted(heard)]
    offers = [offer for offer in accepted if isinstance(offer, Offer)]
    return [o if o is own else _cut(o, typical) for o in offers], dropped


def _hear(
    received: Iterable[object], own: Offer, servers: int
) -> tuple[dict[int, Offer | str], list[Dropped]]:
    """Return the offer of each server, or why there is none, and what came beside."""
    heard: dict[int, Offer | str] = {own.server: own}
    beside = []
    for message in received:
        server = _sender(message, servers)
        if server is None:
            beside.append(Dropped(None, "names no server"))
        elif server in heard:
            beside.append(Dropped(server, "sent more than one offer"))
        else:
            heard[server] = _read(server, message, len(own.coef))
    missing = (k for k in range(servers) if k not in heard)
    return heard | dict.fromkeys(missing, "sent nothing"), beside


def _sender(message: object, servers: int) -> int | None:
    server = message.get("server") if isinstance(message, Mapping) else None
    if not isinstance(server, int) or isinstance(server, bool):
        return None
    return server if 0 <= server < servers else None


def _read(server: int, message: Any, d: int) -> Offer | str:
    """Return the offer, or what is wrong with it."""
    try:
        coef, weights = (_numbers(message.get(name)) for name in ("coef", "weights"))
        intercept = _numbers([message.get("intercept")])
    except UserError as error:
        return str(error)
    if len(coef) != d:
        return f"has {len(coef)} coefficients instead of {d}"
    share = ((weights >= 0) & (weights <= 1)).all()
    if not share or abs(weights.sum() - 1) > _ROUNDING:
        return "states weights that are no distribution"
    return Offer(server, coef, float(intercept[0]), weights)


def _numbers(values: object) -> Array:
    """Return a list of finite numbers as an array."""
    if not isinstance(values, list) or not {type(v) for v in values} <= {int, float}:
        raise UserError("sent something that is no number")
    try:
        array = np.array(values, dtype=np.float64)
    except OverflowError:  # an integer may have any number of digits
        array = np.array([np.inf])
    if not np.isfinite(array).all():
        raise UserError("sent numbers that are not finite")
    return array


def _log_length(offer: Offer) -> float:
    # Clamped: a length may be 0 or overflow.
    return math.log(min(max(offer.length, sys.float_info.min), sys.float_info.max))


def _typical(heard: Mapping[int, Offer | str]) -> float:
    """Return the median of the lengths' logarithms."""
    offers = (offer for offer in heard.values() if isinstance(offer, Offer))
    return float(np.median([_log_length(offer) for offer in offers]))


def _absurd(offer: Offer, typical: float) -> str:
    """Return why an offer's length rules it out, or nothing."""
    over = _log_length(offer) - typical
    if not offer.length:
        return "is zero"
    if abs(over) <= math.log(ABSURD):
        return ""
    side = "over 1000 times" if over > 0 else "below a thousandth of"
    return f"is {side} the median length"


def _cut(offer: Offer, typical: float) -> Offer:
    """Return the same classifier, no longer than ``LONGEST`` times the usual."""
    over = _log_length(offer) - typical - math.log(LONGEST)
    if over <= 0:
        return offer
    factor = math.exp(-over)
    return replace(offer, coef=factor * offer.coef, intercept=factor * offer.intercept)
