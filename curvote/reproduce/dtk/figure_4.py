"""Figure 4: 500 records at target and source: tuned, adaptive, histogram, `auto`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matplotlib.figure import Figure

from curvote.reproduce.dtk import against
from curvote.reproduce.dtk.against import TUNERS
from curvote.reproduce.dtk.tuned import Drift
from curvote.reproduce.gather import Evidence
from curvote.reproduce.rows import Row, finished

GAMMAS = (0.5, 1.0, 1.5)


def rows(found: Evidence) -> list[Row]:
    """Return the accuracy of every classifier as published and corrected."""
    drifts = {f"gamma={gamma:g}": Drift(gamma, n=500) for gamma in GAMMAS}
    ran = against.adaptive(found)
    return finished([*against.tuned(found, TUNERS, drifts), *ran])


def figure(given: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel a gamma, a line a classifier."""
    return against.drawn(given)


def brief(given: Sequence[Row]) -> Sequence[Row]:
    """Return what is private as it says."""
    return against.brief(given)


def said(given: Sequence[Row]) -> Iterator[str]:
    """Yield three sentences of the text beside what is seen, means over gamma."""
    yield "the paper: DTK and AdaptDTK are above DT-HIST, most at small epsilon"
    for name in ("DT-HIST", "DT-HIST jittered", "DTK triangular"):
        yield f"  {name}: {_told(given, name)}"
    yield "  (the printed grid's cells at h = 1/2 are what the Bayes rule decides by)"
    yield "the paper: the cost of adaptation is relatively small"
    for kernel in ("triangular", "gaussian"):
        for noise in (" printed", ""):
            best = against.mean(given, f"DTK {kernel}{noise}")
            own = against.mean(given, f"AdaptDTK {kernel}{noise}")
            cost = ", ".join(f"{best[e] - own[e]:.1f} at {e:g}" for e in own)
            yield f"  {kernel}{noise or ', corrected'}: {cost} points"
    yield f"auto, which nobody tuned: {_told(given, 'auto')}"


def _told(given: Sequence[Row], name: str) -> str:
    found = against.mean(given, name)
    return ", ".join(f"{value:.1f} at {level:g}" for level, value in found.items())
