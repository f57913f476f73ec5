"""What theory says before anything is released: variances, drift, and a planner."""

from typing import TYPE_CHECKING

from curvote.lazy import exports

__all__ = ["Plan", "Prediction", "UtilityPrior", "predict", "prior_from_weak"]
__all__ += ["recommend"]

if TYPE_CHECKING:
    from curvote.theory.advice import Plan, recommend
    from curvote.theory.pilot import prior_from_weak
    from curvote.theory.planner import Prediction, predict
    from curvote.theory.prior import UtilityPrior
else:
    __getattr__ = exports(
        __name__,
        {
            "Plan": "advice",
            "Prediction": "planner",
            "UtilityPrior": "prior",
            "predict": "planner",
            "prior_from_weak": "pilot",
            "recommend": "advice",
        },
    )
