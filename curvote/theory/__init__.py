"""Theory's word before anything is released: variances, drift, and a planner."""

from typing import TYPE_CHECKING

from curvote.lazy import exports

__all__ = [
    "Expectation",
    "Lies",
    "Outlook",
    "Plan",
    "Prediction",
    "Signal",
    "UtilityPrior",
    "expect_direct",
    "expect_votes",
    "look_ahead",
    "predict",
    "prior_from_weak",
    "recommend",
    "strengths",
]

if TYPE_CHECKING:
    from curvote.theory.advice import Plan, recommend
    from curvote.theory.direct import Expectation, expect_direct
    from curvote.theory.lies import Lies
    from curvote.theory.outlook import Outlook, look_ahead
    from curvote.theory.pilot import prior_from_weak
    from curvote.theory.planner import Prediction, predict
    from curvote.theory.prior import UtilityPrior
    from curvote.theory.signals import Signal, strengths
    from curvote.theory.voted import expect_votes
else:
    __getattr__ = exports(
        __name__,
        {
            "Expectation": "direct",
            "Lies": "lies",
            "Outlook": "outlook",
            "Plan": "advice",
            "Prediction": "planner",
            "Signal": "signals",
            "UtilityPrior": "prior",
            "expect_direct": "direct",
            "expect_votes": "voted",
            "look_ahead": "outlook",
            "predict": "planner",
            "prior_from_weak": "pilot",
            "recommend": "advice",
            "strengths": "signals",
        },
    )
