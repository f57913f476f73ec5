"""Stage privatize of `direct`: a noised direction from everybody."""

from curvote.protocols.direct.messages import Direction
from curvote.protocols.stages.drawn import in_order

facts, portions = in_order(Direction())
