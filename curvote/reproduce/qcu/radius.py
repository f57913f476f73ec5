"""Figure 3: the radius around (.5, .5) in which the answer stays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from matplotlib.figure import Figure

from curvote.entropy import SeededEntropy
from curvote.reproduce.drawing import fitting_legend, head, panels
from curvote.reproduce.gather import Evidence
from curvote.reproduce.qcu import plane
from curvote.reproduce.qcu.examples import (
    CLASSIFIERS,
    POINT,
    PRINTED_RADIUS,
    quadratic_distance,
    question,
)
from curvote.reproduce.qcu.known import surface
from curvote.reproduce.rows import Row, finished, having
from curvote.utility.engines.base import Question
from curvote.utility.robustness.box import box
from curvote.utility.robustness.published import as_published

across: Final = "epsilon"
LARGEST, STRAIGHT = "l-infinity", "l2"
SEED: Final = 20240801
_FINE: Final = 2.0**-20  # of the radius


def rows(_: str, found: Evidence | None = None) -> list[Row]:
    """Return the radius by ``learner`` and ``group`` (the norm).

    ``curvote`` is certain, ``claimed`` what the paper's tests find.
    """
    return finished(
        [*(_row(name, question(make())) for name, make in CLASSIFIERS.items()), _l2()]
    )


def _row(name: str, asked: Question) -> Row:
    held = box(surface(asked), asked.values, bounds=asked.bounds, precision=_FINE)
    tested = as_published(asked, SeededEntropy(SEED))
    return _named(name, LARGEST) | {
        "published": PRINTED_RADIUS,
        "curvote": float(held.radius[0]),
        "claimed": float(tested.radius[0]),
    }


def _l2() -> Row:
    distance = quadratic_distance(POINT[0])
    return _named("quadratic", STRAIGHT) | {"curvote": distance}


def _named(name: str, norm: str) -> Row:
    return {
        "setting": "(0.5, 0.5)",
        "learner": name,
        "group": norm,
        "quantity": "value",
    }


def figure(given: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw the answers of both classifiers with the printed ball and ours."""
    drawn, axes = panels(len(CLASSIFIERS), 3.6)
    for ax, (name, make) in zip(axes, CLASSIFIERS.items(), strict=True):
        (one,) = having(given, learner=name, group=LARGEST)
        plane.draw(ax, plane.same(question(make())), POINT[0], ("x_u", "x_v"))
        for label, radius, line in (
            ("printed", one["published"], ":"),
            ("curvote", one["curvote"], "-"),
        ):
            plane.outline(ax, POINT[0] - radius, POINT[0] + radius, label, ls=line)
        head(ax, f"{name}: {one['curvote']:.4f}")
    fitting_legend(drawn, axes[0].get_legend_handles_labels()[0])
    return drawn


def brief(given: Sequence[Row]) -> Sequence[Row]:
    """Return all rows."""
    return given


def said(given: Sequence[Row]) -> Iterator[str]:
    """Yield what the printed weights give."""
    (one,) = having(given, learner="network")
    yield (
        f"the printed weights give {one['curvote']:.4f}; the paper finds"
        f" {one['published']:.2f} for them"
    )
    near, far = having(given, learner="quadratic")
    yield (
        f"the quadratic one that they shall replicate: {near['curvote']:.4f}, and"
        f" {far['curvote']:.4f} straight to its circle"
    )
