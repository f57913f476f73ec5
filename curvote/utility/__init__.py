"""Agreement of a classifier's answers with and without noise, and what to send.

found = quantify(model, X, sensitive=[0, 5], bounds=[(0, 100), (12, 60)],
                 mechanism="pm_01", epsilon=2.0)
found.agreement  # of each record, with lower and upper
"""

from typing import TYPE_CHECKING

from curvote.base.lazy import exports

__all__ = ["Agreement", "Surrogate", "quantify", "robust_box", "surrogate"]

if TYPE_CHECKING:
    from curvote.systems.utility.method.profile import robust_box
    from curvote.systems.utility.method.quantification import (
        Agreement,
        Surrogate,
        quantify,
        surrogate,
    )
else:
    __getattr__ = exports(
        __name__,
        {
            "Agreement": "curvote.systems.utility.method.quantification",
            "Surrogate": "curvote.systems.utility.method.quantification",
            "quantify": "curvote.systems.utility.method.quantification",
            "robust_box": "curvote.systems.utility.method.profile",
            "surrogate": "curvote.systems.utility.method.quantification",
        },
    )
