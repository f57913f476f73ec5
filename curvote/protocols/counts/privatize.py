"""Stage privatize of `counts`: everybody's noised answer to one public question."""

from curvote.protocols.counts.messages import ANSWER
from curvote.protocols.stages.drawn import by

facts, one = by(ANSWER)
