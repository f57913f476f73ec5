"""Stage evaluate: each evaluation client judges one classifier, in one noised bit."""

from curvote.protocols.mrma.messages import Vote
from curvote.protocols.stages.drawn import by

facts, one = by(Vote())
