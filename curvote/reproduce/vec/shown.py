"""What every table and figure of VEC goes through."""

from curvote.reproduce.vec.names import REPRODUCTIONS
from curvote.reproduce.wing import Wing

_WING = Wing("curvote.reproduce.vec", REPRODUCTIONS)
compare, laid_out, agreement = _WING.compare, _WING.laid_out, _WING.agreement
