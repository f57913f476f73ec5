"""Figure 3: value of a source: the target's records with it, and alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from curvote.papers.dtk import comparison
from curvote.papers.evidence import Evidence
from curvote.papers.rows import Row, distinct_values, select

GAMMAS = (0.5, 1.0, 1.5)
KERNELS = ("triangular", "gaussian")
# DTK weighs both servers as is best, targetDTK the target by 1.
_OF = {f"DTK {kernel}": comparison.TUNERS[f"DTK {kernel}"] for kernel in KERNELS} | {
    f"targetDTK {kernel}": comparison.Tuner(kernel, weights=np.ones(1))
    for kernel in KERNELS
}


# A panel a gamma, a line a classifier.
figure = comparison.accuracy_figure


def rows(_: str, evidence: Evidence) -> list[Row]:
    """Return tuned accuracies, and those of the adaptive rules with and without it."""
    drifts = {f"gamma={gamma:g}": comparison.Drift(gamma, n=100) for gamma in GAMMAS}
    return comparison.accuracy_rows(evidence, _OF, drifts)


def conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield the gain by a source, beside the paper's statement."""
    yield "the paper: transfer does better everywhere, by less as gamma grows"
    pairs = [(f"DTK {kernel}", f"targetDTK {kernel}") for kernel in KERNELS]
    pairs += [(f"AdaptDTK {kernel}", f"AdaptDTK {kernel} alone") for kernel in KERNELS]
    for with_source, alone in pairs:
        for setting in distinct_values(results, "setting"):
            setting_rows = select(results, setting=setting)
            sides = (
                select(setting_rows, protocol=name) for name in (with_source, alone)
            )
            gains = [
                f"{first['curvote'] - other['curvote']:+.1f} at {first['epsilon']:g}"
                for first, other in zip(*sides, strict=True)
            ]
            yield f"  {with_source}, {setting}: {', '.join(gains)}"
