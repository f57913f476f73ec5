"""Faulty servers of a study, which the others must survive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from curvote.federation.offers import Offer

OfferMessage = dict[str, Any]


FAULTS: Final[dict[str, Callable[[OfferMessage], OfferMessage] | None]] = {
    "nan": lambda told: told | {"coef": [float("nan")] * len(told["coef"])},
    "dimension": lambda told: told | {"coef": [*told["coef"], 1.0]},
    "huge": lambda told: told | {"coef": [1e9 * number for number in told["coef"]]},
    "weights": lambda told: told | {"weights": [-1e9 * w for w in told["weights"]]},
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
