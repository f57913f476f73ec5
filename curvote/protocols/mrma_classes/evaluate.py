"""Stage evaluate of `mrma_classes`: each client judges one classifier of one class."""

from curvote.protocols.mrma_classes.messages import Vote
from curvote.protocols.stages.drawn import by

facts, one = by(Vote())
