"""The messages of MRMA, as the clients of many servers send them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from curvote.chain.sent import Sent
from curvote.protocols.mrma import messages

_ASKED = {
    "clients": (("epsilon", "judges one own classifier or one of the servers', once"),),
    "budget": (
        ("epsilon / 2", "judges one of its server's own classifiers"),
        ("epsilon / 2", "judges one of the servers' classifiers"),
    ),
    "single": (("epsilon", "judges one of its server's own classifiers, once"),),
}


class Vote(messages.Vote):
    """A vote; where the budget is split, a client sends two."""

    def words(self, config: Mapping[str, Any], d: int) -> Sequence[Sent]:
        """Return each vote in words, with its part of the budget."""
        (vote,) = super().words(config, d)
        asked = _ASKED[config["federation"]["split"]]
        return [replace(vote, epsilon=part, detail=told) for part, told in asked]


MESSAGES = {"report": messages.Report(), "vote": Vote()}
