"""Message of `votes`: a noised bit about one random direction."""

from __future__ import annotations

from curvote.messages.roles import EVERYBODY
from curvote.systems.common.questions import halving_code
from curvote.systems.mrma import messages


class DirectionVote(messages.Vote):
    """A vote as MRMA's voters send it, from everybody, about any number of classes."""

    binary = False
    questions = staticmethod(halving_code)
    senders, who = EVERYBODY, "every client"
    what = 'one noised bit: "the direction was right for me"'
    detail = "each judges one random direction, once, with the whole budget"


MESSAGES = {"vote": DirectionVote()}
