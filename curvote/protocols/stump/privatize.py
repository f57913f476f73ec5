"""Stage privatize of `stump`: everybody's noised answer to one public question."""

from curvote.protocols.stages.drawn import by
from curvote.protocols.stump.messages import ANSWER

facts, one = by(ANSWER)
