"""The message of `votes`: everybody's noised bit about one random direction."""

from __future__ import annotations

from curvote.protocols.mrma import messages
from curvote.protocols.roles import EVERYBODY


class Vote(messages.Vote):
    """A vote as MRMA's voters send it, from everybody."""

    senders = EVERYBODY


MESSAGES = {"vote": Vote()}
