"""What theory says before anything is released: variances, drift, and a planner."""

from typing import TYPE_CHECKING

from curvote.lazy import exports

__all__ = [
    "Expectation",
    "Outlook",
    "Plan",
    "Prediction",
    "Signal",
    "UtilityPrior",
    "expect_direct",
    "look_ahead",
    "predict",
    "prior_from_weak",
    "recommend",
    "strengths",
]

if TYPE_CHECKING:
    from curvote.theory.advice import Plan, recommend
    from curvote.theory.direct import Expectation, expect_direct
    from curvote.theory.outlook import Outlook, look_ahead
    from curvote.theory.pilot import prior_from_weak
    from curvote.theory.planner import Prediction, predict
    from curvote.theory.prior import UtilityPrior
    from curvote.theory.signals import Signal, strengths
else:
    __getattr__ = exports(
        __name__,
        {
            "Expectation": "direct",
            "Outlook": "outlook",
            "Plan": "advice",
            "Prediction": "planner",
            "Signal": "signals",
            "UtilityPrior": "prior",
            "expect_direct": "direct",
            "look_ahead": "outlook",
            "predict": "planner",
            "prior_from_weak": "pilot",
            "recommend": "advice",
            "strengths": "signals",
        },
    )
