"""Figure 3: what a source is worth: the target's records with it, and alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.figure import Figure

from curvote.reproduce.drawing import distinct
from curvote.reproduce.dtk import against
from curvote.reproduce.dtk.against import TUNERS
from curvote.reproduce.dtk.tuned import Drift, Tuner
from curvote.reproduce.gather import Evidence
from curvote.reproduce.rows import Row, finished, having

GAMMAS = (0.5, 1.0, 1.5)
KERNELS = ("triangular", "gaussian")
# DTK weighs both servers as is best, targetDTK the target by 1.
_OF = {f"DTK {kernel}": TUNERS[f"DTK {kernel}"] for kernel in KERNELS} | {
    f"targetDTK {kernel}": Tuner(kernel, weights=np.ones(1)) for kernel in KERNELS
}


def rows(found: Evidence) -> list[Row]:
    """Return tuned accuracies, and those of the adaptive rules with and without it."""
    drifts = {f"gamma={gamma:g}": Drift(gamma, n=100) for gamma in GAMMAS}
    return finished([*against.tuned(found, _OF, drifts), *against.adaptive(found)])


def figure(given: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel a gamma, a line a classifier."""
    return against.drawn(given)


def brief(given: Sequence[Row]) -> Sequence[Row]:
    """Return all rows."""
    return given


def said(given: Sequence[Row]) -> Iterator[str]:
    """Yield what a source adds, beside what the text says of it."""
    yield "the paper: transfer does better everywhere, by less as gamma grows"
    pairs = [(f"DTK {kernel}", f"targetDTK {kernel}") for kernel in KERNELS]
    pairs += [(f"AdaptDTK {kernel}", f"AdaptDTK {kernel} alone") for kernel in KERNELS]
    for both, alone in pairs:
        for setting in distinct(given, "setting"):
            mine = having(given, setting=setting)
            sides = having(mine, protocol=both), having(mine, protocol=alone)
            gains = [
                f"{one['curvote'] - other['curvote']:+.1f} at {one['epsilon']:g}"
                for one, other in zip(*sides, strict=True)
            ]
            yield f"  {both}, {setting}: {', '.join(gains)}"
