"""Stage privatize of two rounds: the noised directions of the first clients."""

from curvote.protocols.direct_two.messages import FIRST_ROUND
from curvote.protocols.stages.drawn import in_order

facts, portions = in_order(FIRST_ROUND)
