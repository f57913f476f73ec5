"""Messages of `federated`: those of MRMA, with a split budget."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from curvote.chain.system import MessageDescription
from curvote.systems.mrma import messages

_VOTE_PARTS = {
    "clients": (("epsilon", "judges one own classifier or one of the servers', once"),),
    "budget": (
        ("epsilon / 2", "judges one of its server's own classifiers"),
        ("epsilon / 2", "judges one of the servers' classifiers"),
    ),
    "single": (("epsilon", "judges one of its server's own classifiers, once"),),
}


class ServerVote(messages.Vote):
    """Vote of a client of a server; with a split budget it sends two."""

    def describe(
        self, config: Mapping[str, Any], d: int
    ) -> Sequence[MessageDescription]:
        """Return the description of each vote, with its part of the budget."""
        (vote,) = super().describe(config, d)
        vote_parts = _VOTE_PARTS[config["federation"]["split"]]
        return [
            replace(vote, epsilon=part, detail=detail) for part, detail in vote_parts
        ]


MESSAGES = {"report": messages.Report(), "vote": ServerVote()}
