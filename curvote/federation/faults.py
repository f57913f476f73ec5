"""Servers that answer badly, so that a study can show that the others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from curvote.federation.offers import Offer

Message = dict[str, Any]


FAULTS: Final[dict[str, Callable[[Message], Message] | None]] = {
    "nan": lambda told: told | {"coef": [float("nan")] * len(told["coef"])},
    "dimension": lambda told: told | {"coef": [*told["coef"], 1.0]},
    "huge": lambda told: told | {"coef": [1e9 * each for each in told["coef"]]},
    "weights": lambda told: told | {"weights": [-1e9 * w for w in told["weights"]]},
    "silent": None,
}


def sent(offers: Iterable[Offer], faults: Mapping[int, str]) -> Iterator[Message]:
    """Yield what each server sends: its offer, or what its fault makes of it."""
    for offer in offers:
        fault = FAULTS[faults[offer.server]] if offer.server in faults else dict
        if fault is not None:
            yield fault(offer.to_json())
