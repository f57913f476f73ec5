"""Servers that answer badly, so that a study can show that the others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from curvote.federation.offers import Offer

Message = dict[str, Any]


def _nan(message: Message) -> Message:
    return message | {"coef": [float("nan")] * len(message["coef"])}


def _dimension(message: Message) -> Message:
    return message | {"coef": [*message["coef"], 1.0]}


def _huge(message: Message) -> Message:
    return message | {"coef": [1e9 * value for value in message["coef"]]}


def _weights(message: Message) -> Message:
    return message | {"weights": [-1e9 * value for value in message["weights"]]}


FAULTS: Final[dict[str, Callable[[Message], Message] | None]] = {
    "nan": _nan,
    "dimension": _dimension,
    "huge": _huge,
    "weights": _weights,
    "silent": None,
}


def sent(offers: Iterable[Offer], faults: Mapping[int, str]) -> Iterator[Message]:
    """Yield what each server sends: its offer, or what its fault makes of it."""
    for offer in offers:
        fault = FAULTS[faults[offer.server]] if offer.server in faults else dict
        if fault is not None:
            yield fault(offer.to_json())
