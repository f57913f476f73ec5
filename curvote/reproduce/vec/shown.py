"""Reproduction of VEC's entries."""

from curvote.reproduce.vec.names import REPRODUCTIONS
from curvote.reproduce.wing import Paper

_PAPER = Paper("curvote.reproduce.vec", REPRODUCTIONS)
compare, laid_out, agreement = _PAPER.compare, _PAPER.laid_out, _PAPER.agreement
