"""Check of the declared law's loss against e^epsilon, in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

from curvote.audit.bounds import exceeds_exp
from curvote.audit.row import Finding
from curvote.audit.subject import Loss, Subject


def check_declared_loss(subject: Subject, loss: Loss) -> Finding:
    """Check that the integers of the law stay within the budget.

    A fraction is compared with e^epsilon by rational bounds: one threshold in 2^64
    that is too large by 1 is caught.
    """
    claimed = subject.budget.epsilon
    if loss.ratio is not None and exceeds_exp(loss.ratio, claimed):
        excess = loss.log - claimed
        by = "less than 1e-9" if excess < 1e-9 else f"{excess:.3g}"
        return Finding("exact", f"the worst ratio exceeds e^{claimed:g} by {by} in log")
    if Fraction(loss.log) > Fraction(claimed):
        return Finding("exact", f"the worst loss is {loss.log:.6g}, not {claimed:g}")
    return Finding("exact")
