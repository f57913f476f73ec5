"""Figure 4: 500 records at target and source: tuned, adaptive, histogram, `auto`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from curvote.papers.dtk import comparison
from curvote.papers.dtk.comparison import TUNERS, Drift
from curvote.papers.evidence import Evidence
from curvote.papers.rows import Row

GAMMAS = (0.5, 1.0, 1.5)


# A panel a gamma, a line a classifier; in the terminal what is as private as claimed.
figure, terminal_rows = comparison.accuracy_figure, comparison.private_rows


def rows(_: str, evidence: Evidence) -> list[Row]:
    """Return the accuracy of every classifier as published and corrected."""
    drifts = {f"gamma={gamma:g}": Drift(gamma, n=500) for gamma in GAMMAS}
    return comparison.accuracy_rows(evidence, TUNERS, drifts)


def conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield three statements of the text beside means over gamma."""
    yield "the paper: DTK and AdaptDTK are above DT-HIST, most at small epsilon"
    for name in ("DT-HIST", "DT-HIST jittered", "DTK triangular"):
        yield f"  {name}: {_mean_text(results, name)}"
    yield "  (the printed grid's cells at h = 1/2 are what the Bayes rule decides by)"
    yield "the paper: the cost of adaptation is relatively small"
    for kernel in ("triangular", "gaussian"):
        for noise in (" printed", ""):
            best = comparison.mean_accuracy(results, f"DTK {kernel}{noise}")
            adaptive = comparison.mean_accuracy(results, f"AdaptDTK {kernel}{noise}")
            cost = ", ".join(f"{best[e] - adaptive[e]:.1f} at {e:g}" for e in adaptive)
            yield f"  {kernel}{noise or ', corrected'}: {cost} points"
    yield f"auto, which nobody tuned: {_mean_text(results, 'auto')}"


def _mean_text(results: Sequence[Row], name: str) -> str:
    means = comparison.mean_accuracy(results, name)
    return ", ".join(f"{value:.1f} at {level:g}" for level, value in means.items())
