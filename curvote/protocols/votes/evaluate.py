"""Stage evaluate of `votes`: everybody judges one direction, in one noised bit."""

from curvote.protocols.stages.drawn import by
from curvote.protocols.votes.messages import Vote

facts, one = by(Vote())
