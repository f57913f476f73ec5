"""What every table and figure of QCU goes through."""

from curvote.reproduce.qcu.names import REPRODUCTIONS
from curvote.reproduce.wing import Wing

_WING = Wing("curvote.reproduce.qcu", REPRODUCTIONS)
compare, laid_out, agreement = _WING.compare, _WING.laid_out, _WING.agreement
