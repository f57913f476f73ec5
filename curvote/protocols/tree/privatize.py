"""Stage privatize of `tree`: everybody's noised answer to one public question."""

from curvote.protocols.stages.drawn import by
from curvote.protocols.tree.messages import ANSWER

facts, one = by(ANSWER)
