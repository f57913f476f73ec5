"""What production may know of a cell: counts, utilities, and whether they fell."""

from __future__ import annotations

import numpy as np

from curvote.chain.axis import Settings
from curvote.chain.stage import Facts
from curvote.chain.view import View
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.server.watch import fell


def reported(view: View) -> dict[str, float]:
    """Return how many reports made the classifier."""
    return {"reports": int(view.columns("aggregate", "classifier")["n"][0])}


def voted(view: View) -> dict[str, float]:
    """Return counts, and the estimated utility of the best classifier after reversal.

    Choosing it makes it look better than it is, so ``utility_se`` is a lower bound on
    its error.
    """
    votes = view.columns("evaluate", "votes")
    made = view.columns("aggregate", "ensemble")
    utility = np.where(made["reversed"], 1 - made["utility"], made["utility"])
    best = int(np.argmax(utility))
    keep = BinaryRR(epsilon=view.cell["epsilon"]).keep
    n = int(votes["n"][best])
    share = (votes["positive"][best] + 2) / (n + 4)  # never 0: Agresti & Coull (1998)
    return {
        "reports": _reports(view),
        "votes": int(votes["n"].sum()),
        "classifiers": len(utility),
        "passed": int((utility > view.facts("aggregate")["cutoff"]).sum()),
        "utility": float(utility[best]),
        "utility_se": float(np.sqrt(share * (1 - share) / n) / (2 * keep - 1)),
    }


def _reports(view: View) -> int:
    """Return how many reports there were before the votes; some protocols ask none."""
    return view.count("privatize") if view.holds("privatize") else 0


def alarm(settings: Settings, facts: Facts) -> bool:
    """Say whether a stage that collected votes found the newest ones worse.

    The level is that of ``online.drop`` standard errors.
    """
    level = facts.get("fall")
    return level is not None and fell(level, settings.online.drop)
