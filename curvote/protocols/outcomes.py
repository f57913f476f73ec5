"""Outcomes of production: counts, utilities and drift alerts."""

from __future__ import annotations

import numpy as np

from curvote.chain.axis import PipelineSettings
from curvote.chain.stage import Metadata
from curvote.chain.view import View
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.server.watch import is_drift


def count_reports(view: View) -> dict[str, float]:
    """Return the number of reports that made the classifier."""
    return {"reports": int(view.columns("aggregate", "classifier")["n"][0])}


def vote_outcome(view: View) -> dict[str, float]:
    """Return counts, and the estimated utility of the best classifier.

    Choosing it makes it look better than it is, so ``utility_se`` is a lower bound on
    its error.
    """
    votes = view.columns("evaluate", "votes")
    ensemble = view.columns("aggregate", "ensemble")
    utility = np.where(
        ensemble["reversed"], 1 - ensemble["utility"], ensemble["utility"]
    )
    best = int(np.argmax(utility))
    keep = BinaryRR(epsilon=view.cell["epsilon"]).keep
    n = int(votes["n"][best])
    share = (votes["positive"][best] + 2) / (n + 4)  # never 0: Agresti & Coull (1998)
    return {
        "reports": _count_earlier_reports(view),
        "votes": int(votes["n"].sum()),
        "classifiers": len(utility),
        "passed": int((utility > view.metadata("aggregate")["cutoff"]).sum()),
        "utility": float(utility[best]),
        "utility_se": float(np.sqrt(share * (1 - share) / n) / (2 * keep - 1)),
    }


def _count_earlier_reports(view: View) -> int:
    """Return the number of reports before the votes."""
    return view.count("privatize") if view.holds("privatize") else 0


def votes_declined(settings: PipelineSettings, metadata: Metadata) -> bool:
    """Say whether the newest votes found the classifiers worse.

    The level is that of ``online.drop`` standard errors.
    """
    level = metadata.get("fall")
    return level is not None and is_drift(level, settings.online.drop)
