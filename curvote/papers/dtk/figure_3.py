"""Figure 3: value of a source: the target's records with it, and alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.figure import Figure

from curvote.papers.drawing import distinct_values
from curvote.papers.dtk import comparison
from curvote.papers.dtk.comparison import TUNERS, Drift, Tuner
from curvote.papers.evidence import Evidence
from curvote.papers.rows import Row, complete_rows, select

GAMMAS = (0.5, 1.0, 1.5)
KERNELS = ("triangular", "gaussian")
# DTK weighs both servers as is best, targetDTK the target by 1.
_OF = {f"DTK {kernel}": TUNERS[f"DTK {kernel}"] for kernel in KERNELS} | {
    f"targetDTK {kernel}": Tuner(kernel, weights=np.ones(1)) for kernel in KERNELS
}


def rows(evidence: Evidence) -> list[Row]:
    """Return tuned accuracies, and those of the adaptive rules with and without it."""
    drifts = {f"gamma={gamma:g}": Drift(gamma, n=100) for gamma in GAMMAS}
    return complete_rows(
        [
            *comparison.tuned_rows(evidence, _OF, drifts),
            *comparison.adaptive_rows(evidence),
        ]
    )


def figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel a gamma, a line a classifier."""
    return comparison.accuracy_figure(results)


def terminal_rows(results: Sequence[Row]) -> Sequence[Row]:
    """Return all rows."""
    return results


def conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield the gain by a source, beside the paper's statement."""
    yield "the paper: transfer does better everywhere, by less as gamma grows"
    pairs = [(f"DTK {kernel}", f"targetDTK {kernel}") for kernel in KERNELS]
    pairs += [(f"AdaptDTK {kernel}", f"AdaptDTK {kernel} alone") for kernel in KERNELS]
    for with_source, alone in pairs:
        for setting in distinct_values(results, "setting"):
            setting_rows = select(results, setting=setting)
            sides = (
                select(setting_rows, protocol=with_source),
                select(setting_rows, protocol=alone),
            )
            gains = [
                f"{first['curvote'] - other['curvote']:+.1f} at {first['epsilon']:g}"
                for first, other in zip(*sides, strict=True)
            ]
            yield f"  {with_source}, {setting}: {', '.join(gains)}"
