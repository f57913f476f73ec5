"""Value of labelled public records, in noised reports."""

from __future__ import annotations

from typing import Final

from curvote import validate

# The noise of N reports has v N epsilon^2 of about 6 (`curvote.protocols.choice`), the
# label moment of n unit vectors with p numbers a variance of 1/(p n) in each.
RECORD_WORTH: Final = 6.0


def volunteer_worth(volunteers: int, d: int, n_classes: int = 2) -> float:
    """Return the N epsilon^2 of reports worth as much as labelled records.

    They are ``volunteers`` >= 0 records of ``d`` >= 1 numbers: 6 (d + 1) times as many,
    and K - 1 times that with ``n_classes`` K >= 2.
    """
    count = validate.at_least(0, volunteers=volunteers)
    code_count = validate.at_least(2, n_classes=n_classes) - 1
    return RECORD_WORTH * code_count * (validate.at_least(1, d=d) + 1) * count
