"""The message of `votes`: everybody's noised bit about one random direction."""

from __future__ import annotations

from curvote.protocols.mrma import messages
from curvote.protocols.questions import splits
from curvote.protocols.roles import EVERYBODY


class Vote(messages.Vote):
    """A vote as MRMA's voters send it, from everybody, about any number of classes."""

    binary = False
    questions = staticmethod(splits)
    senders, who = EVERYBODY, "every client"
    what = 'one noised bit: "the direction was right for me"'
    detail = "each judges one random direction, once, with the whole budget"


MESSAGES = {"vote": Vote()}
