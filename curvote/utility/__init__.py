"""Agreement of a classifier's answers with and without noise, and what to send.

found = quantify(model, X, sensitive=[0, 5], bounds=[(0, 100), (12, 60)],
                 mechanism="pm_01", epsilon=2.0)
found.agreement  # of each record, with lower and upper
"""

from typing import TYPE_CHECKING

from curvote.lazy import exports

__all__ = ["Agreement", "Surrogate", "quantify", "robust_box", "surrogate"]

if TYPE_CHECKING:
    from curvote.utility.quantifying import Agreement, quantify
    from curvote.utility.robust import robust_box
    from curvote.utility.surrogates import Surrogate, surrogate
else:
    __getattr__ = exports(
        __name__,
        {
            "Agreement": "quantifying",
            "Surrogate": "surrogates",
            "quantify": "quantifying",
            "robust_box": "robust",
            "surrogate": "surrogates",
        },
    )
