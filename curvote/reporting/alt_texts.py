"""What each figure of a report shows, in words."""

from __future__ import annotations

import numpy as np

from curvote.reporting.data import PageData, epsilons, learners
from curvote.reporting.words import curves_caption, headline


def alt_texts(data: PageData) -> dict[str, str]:
    """Return what each figure shows, for readers who cannot see it."""
    names = ", ".join(learners(data.scores)) or "no learner"
    levels = ", ".join(f"{e:g}" for e in epsilons(data.scores)) or "none"
    return {
        "misclassification": (
            f"Line chart of the error in percent against epsilon ({levels}), one panel"
            f" for each learner ({names}), one line for each method. {headline(data)}"
        ),
        "utilities": (
            "Distributions of the estimated utilities of the weak classifiers, one"
            f" ridge for each epsilon, one panel for each learner. {_spread(data)}"
        ),
        "curves": f"Three panels by class. {curves_caption(data)}",
    }


def _spread(data: PageData) -> str:
    if data.utilities.empty:
        return ""
    level = max(epsilons(data.utilities))
    values = data.utilities.loc[data.utilities["epsilon"] == level, "utility"]
    low, high = np.quantile(values.to_numpy(float), [0.1, 0.9])
    return f"At epsilon {level:g}, 80 % lie between {low:.2f} and {high:.2f}."
