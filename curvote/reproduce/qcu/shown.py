"""Reproduction of QCU's entries."""

from curvote.reproduce.qcu.names import REPRODUCTIONS
from curvote.reproduce.wing import Paper

_PAPER = Paper("curvote.reproduce.qcu", REPRODUCTIONS)
compare, laid_out, agreement = _PAPER.compare, _PAPER.laid_out, _PAPER.agreement
