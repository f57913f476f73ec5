"""Stage privatize of `majority`: a noised label from everybody."""

from curvote.protocols.majority.messages import Label
from curvote.protocols.stages.drawn import by

facts, one = by(Label())
