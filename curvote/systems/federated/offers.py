"""Offers of servers to each other: classifiers, checked before use."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import UserError

Array = NDArray[np.float64]

MAX_LENGTH_RATIO = 1e3  # times the median length: no honest server's classifier
MAX_WEIGHT_RATIO = 10.0  # times the median length: what a classifier may count for
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
class DroppedOffer:
    """Server whose offer is left out (None: unknown), and the reason."""

    server: int | None
    reason: str


def accept_offers(
    received: Iterable[object], own_offer: Offer, servers: int
) -> tuple[list[Offer], list[DroppedOffer]]:
    """Return the offers that a server keeps, and those that it drops.

    ``received`` holds what came from the other of ``servers`` servers, decoded JSON of
    any kind; ``own_offer`` is always kept. Dropped, never an exception: what is no
    offer, names no server or one that was heard before, is not finite numbers, has
    another d, weights that are no distribution, all zeros, or a length over 1000 times
    or below a thousandth of the median length of all (the geometric one, so that of two
    servers neither decides alone); and who sent nothing.

    The average is over unnormalised coefficients (MRMA, equation 11), so a long offer
    counts for more than its weight says: one longer than ten times the median of those
    accepted is cut to that, which leaves its decisions as they are.
    """
    answers, dropped = _collect_offers(received, own_offer, servers)
    usual_length = _usual_log_length(answers)
    for server, offer in answers.items():
        if isinstance(offer, Offer) and offer is not own_offer:
            answers[server] = _length_problem(offer, usual_length) or offer
    dropped += [
        DroppedOffer(k, why) for k, why in answers.items() if isinstance(why, str)
    ]
    usual_length = _usual_log_length(answers)
    accepted = [answers[k] for k in sorted(answers)]
    offers = [offer for offer in accepted if isinstance(offer, Offer)]
    return [
        o if o is own_offer else _shorten_offer(o, usual_length) for o in offers
    ], dropped


def _collect_offers(
    received: Iterable[object], own_offer: Offer, servers: int
) -> tuple[dict[int, Offer | str], list[DroppedOffer]]:
    """Return the offer of each server or its fault, and extra messages."""
    answers: dict[int, Offer | str] = {own_offer.server: own_offer}
    extra = []
    for message in received:
        server = _sender_number(message, servers)
        if server is None:
            extra.append(DroppedOffer(None, "names no server"))
        elif server in answers:
            extra.append(DroppedOffer(server, "sent more than one offer"))
        else:
            answers[server] = _parse_offer(server, message, len(own_offer.coef))
    silent = (k for k in range(servers) if k not in answers)
    return answers | dict.fromkeys(silent, "sent nothing"), extra


def _sender_number(message: object, servers: int) -> int | None:
    server = message.get("server") if isinstance(message, Mapping) else None
    if not isinstance(server, int) or isinstance(server, bool):
        return None
    return server if 0 <= server < servers else None


def _parse_offer(server: int, message: Any, d: int) -> Offer | str:
    """Return the offer of a message, or what is wrong with it."""
    try:
        coef, weights = (
            _finite_array(message.get(name)) for name in ("coef", "weights")
        )
        intercept = _finite_array([message.get("intercept")])
    except UserError as error:
        return str(error)
    if len(coef) != d:
        return f"has {len(coef)} coefficients instead of {d}"
    is_share = ((weights >= 0) & (weights <= 1)).all()
    if not is_share or abs(weights.sum() - 1) > _ROUNDING:
        return "states weights that are no distribution"
    return Offer(server, coef, float(intercept[0]), weights)


def _finite_array(values: object) -> Array:
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


def _usual_log_length(answers: Mapping[int, Offer | str]) -> float:
    """Return the median of the lengths' logarithms."""
    offers = (offer for offer in answers.values() if isinstance(offer, Offer))
    return float(np.median([_log_length(offer) for offer in offers]))


def _length_problem(offer: Offer, usual: float) -> str:
    """Return why an offer's length rules it out, or an empty text."""
    excess = _log_length(offer) - usual
    if not offer.length:
        return "is zero"
    if abs(excess) <= math.log(MAX_LENGTH_RATIO):
        return ""
    side = "over 1000 times" if excess > 0 else "below a thousandth of"
    return f"is {side} the median length"


def _shorten_offer(offer: Offer, usual: float) -> Offer:
    """Return the same classifier, cut to the longest length that counts."""
    excess = _log_length(offer) - usual - math.log(MAX_WEIGHT_RATIO)
    if excess <= 0:
        return offer
    factor = math.exp(-excess)
    return replace(offer, coef=factor * offer.coef, intercept=factor * offer.intercept)


OfferMessage = dict[str, Any]


FAULTS: Final[dict[str, Callable[[OfferMessage], OfferMessage] | None]] = {
    "nan": lambda offer: offer | {"coef": [float("nan")] * len(offer["coef"])},
    "dimension": lambda offer: offer | {"coef": [*offer["coef"], 1.0]},
    "huge": lambda offer: offer | {"coef": [1e9 * number for number in offer["coef"]]},
    "weights": lambda offer: offer | {"weights": [-1e9 * w for w in offer["weights"]]},
    "silent": None,
}


def apply_faults(
    offers: Iterable[Offer], faults: Mapping[int, str]
) -> Iterator[OfferMessage]:
    """Yield the message of each server, as its fault leaves it."""
    for offer in offers:
        fault = FAULTS[faults[offer.server]] if offer.server in faults else dict
        if fault is not None:
            yield fault(offer.to_json())
