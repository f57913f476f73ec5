"""Figure 3: radius around (.5, .5) in which the answer stays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from matplotlib.figure import Figure

from curvote.base.entropy import SeededEntropy
from curvote.papers.drawing import fitting_legend, panel_title, panels
from curvote.papers.evidence import Evidence
from curvote.papers.qcu import panels as plane
from curvote.papers.qcu import studies
from curvote.papers.rows import Row, completed, select
from curvote.systems.utility.method.profile import certify_box, published_boxes

LARGEST, STRAIGHT = "l-infinity", "l2"
SEED: Final = 20240801
_FINE: Final = 2.0**-20  # of the radius


@completed
def rows(_: str, evidence: Evidence | None = None) -> Iterator[Row]:
    """Yield the radius by ``learner`` and ``group`` (the norm).

    ``curvote`` is certain, ``claimed`` what the paper's tests find.
    """
    base = {"setting": "(0.5, 0.5)", "quantity": "value"}
    for name, make in studies.CLASSIFIERS.items():
        query = studies.example_question(make())
        surface = studies.answer_surface(query)
        our_box = certify_box(
            surface, query.values, bounds=query.bounds, precision=_FINE
        )
        tested = published_boxes(query, SeededEntropy(SEED))
        yield base | {
            "learner": name,
            "group": LARGEST,
            "published": studies.PRINTED_RADIUS,
            "curvote": float(our_box.radius[0]),
            "claimed": float(tested.radius[0]),
        }
    distance = studies.quadratic_distance(studies.POINT[0])
    yield base | {"learner": "quadratic", "group": STRAIGHT, "curvote": distance}


def figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw the answers of both classifiers with the printed ball and ours."""
    fig, axes = panels(len(studies.CLASSIFIERS), 3.6)
    for ax, (name, make) in zip(axes, studies.CLASSIFIERS.items(), strict=True):
        (row,) = select(results, learner=name, group=LARGEST)
        plane.draw_map(ax, studies.example_question(make()), ("x_u", "x_v"))
        for label, column, line in (
            ("printed", "published", ":"),
            ("curvote", "curvote", "-"),
        ):
            low, high = (studies.POINT[0] + side * row[column] for side in (-1, 1))
            plane.draw_box(ax, low, high, label, ls=line)
        panel_title(ax, f"{name}: {row['curvote']:.4f}")
    fitting_legend(fig, axes[0].get_legend_handles_labels()[0])
    return fig


def conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield the radii by the printed weights."""
    (row,) = select(results, learner="network")
    yield (
        f"the printed weights give {row['curvote']:.4f}; the paper finds"
        f" {row['published']:.2f} for them"
    )
    near, far = select(results, learner="quadratic")
    yield (
        f"the quadratic one that they shall replicate: {near['curvote']:.4f}, and"
        f" {far['curvote']:.4f} straight to its circle"
    )
