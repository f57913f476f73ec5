"""Table 2: milliseconds and classifier queries of a value."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Final

import numpy as np
from matplotlib.figure import Figure

from curvote.base.entropy import SystemEntropy
from curvote.mechanisms.base import product_law
from curvote.papers.drawing import fitting_legend, panel_title, panels
from curvote.papers.evidence import Evidence
from curvote.papers.qcu import studies
from curvote.papers.qcu.laws import agreement, our_channel, paper_law
from curvote.papers.rows import Row, completed, select
from curvote.systems.utility.method import profile

MODEL, RECORD, EPSILON = "stroke-logistic", "age 79", 2.0
DRAWS: Final = 2000
TESTS: Final = 7  # of a radius to .01
_REPEATS: Final = 7
EMPIRICAL, THEORETICAL = "2000 draws", "theoretical"
EXACT, BOUND, SURFACE = "exact", "bound", "surface, once"
TIMES, QUERIES = "milliseconds", "queries"
PRINTED: Final = {
    ("pm_01", EMPIRICAL): 6.56,
    ("exponential", EMPIRICAL): 859.83,
    ("laplace", EMPIRICAL): 11.29,
    ("pm_01", THEORETICAL): 0.24,
    ("exponential", THEORETICAL): 0.94,
    ("laplace", THEORETICAL): 0.30,
}
_TICKS: Final = (0.1, 1, 10, 100, 1000)
MECHANISMS: Final = ("pm_01", "exponential", "laplace")


@completed
def rows(name: str, evidence: Evidence) -> Iterator[Row]:
    """Yield times and queries by ``setting`` (the value) and ``method``.

    ``group`` is "milliseconds", the median of seven on this machine, or "queries".
    """
    robust_model = studies.analyze_setting(
        studies.evidence_project(name, evidence), MODEL, RECORD
    )
    once = _median_milliseconds(lambda: studies.answer_surface(robust_model.question))
    yield _cost_row(TIMES, SURFACE, once)
    for mechanism in MECHANISMS:
        for setting, make in _computations(robust_model, mechanism).items():
            printed = PRINTED.get((mechanism, setting))
            cost = _cost_row(TIMES, setting, _median_milliseconds(make))
            yield cost | {"method": mechanism, "published": printed}
    test = profile.query_count()
    yield _cost_row(QUERIES, "a test as published", test)
    yield _cost_row(QUERIES, "a radius as published", TESTS * test)
    right = TESTS * profile.query_count(profile.OMEGA / TESTS)
    yield _cost_row(QUERIES, "a radius at the stated risk", right)
    yield _cost_row(QUERIES, EMPIRICAL, DRAWS)
    yield _cost_row(QUERIES, f"{EXACT}, {BOUND}", int(robust_model.box.queries.sum()))


def _computations(
    robust_model: studies.RobustModel, mechanism: str
) -> dict[str, Callable[[], object]]:
    """Return what is timed of a mechanism, by setting."""
    channel, law = our_channel(mechanism, EPSILON), paper_law(mechanism, EPSILON)
    values, box = robust_model.values, robust_model.box
    return {
        EMPIRICAL: lambda: drawn_agreement(robust_model, mechanism),
        THEORETICAL: lambda: product_law(*map(law.law, values.T)).box(
            box.low, box.high
        ),
        BOUND: lambda: profile.certified_bound(channel, values, box),
        EXACT: lambda: agreement(robust_model.surface, channel),
    }


def drawn_agreement(robust_model: studies.RobustModel, name: str) -> float:
    """Return the share of draws of our mechanism whose answer is the record's."""
    query = robust_model.question
    many = np.repeat(query.records[:1], DRAWS, axis=0)
    places = list(query.sensitive)
    many[:, places] = our_channel(name, EPSILON).draw(many[:, places], SystemEntropy())
    clean = query.model.predict(query.records[:1])
    return float(np.mean(query.model.predict(many) == clean))


def _median_milliseconds(make: Callable[[], object]) -> float:
    took = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        make()
        took.append(1000 * (time.perf_counter() - start))
    return median(took)


def _cost_row(group: str, setting: str, value: float) -> Row:
    return {
        "learner": MODEL,
        "group": group,
        "setting": setting,
        "quantity": "value",
        "curvote": float(value),
    }


def figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw printed and measured times on a logarithmic axis."""
    fig, axes = panels(len(MECHANISMS), 2.6)
    for ax, name in zip(axes, MECHANISMS, strict=True):
        selected = select(results, method=name)
        for column, marker, colour, label in (
            ("published", "s", "#a9b0b8", "printed"),
            ("curvote", "o", "#0072b2", "curvote"),
        ):
            pairs = [(row[column], row["setting"]) for row in selected if row[column]]
            points = zip(*pairs, strict=True)
            ax.plot(*points, ls="", marker=marker, color=colour, label=label)
        ax.set_xscale("log")
        ax.set_xlim(0.05, 2000)
        ax.set_xticks(_TICKS, [f"{tick:g}" for tick in _TICKS])
        ax.minorticks_off()
        ax.set_xlabel(TIMES)
        ax.grid(axis="x")
        panel_title(ax, name)
    fitting_legend(fig, axes[0].get_legend_handles_labels()[0])
    return fig


def conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield the numbers of queries behind the printed .24 ms."""
    (test,) = select(results, setting="a test as published")
    (radius,) = select(results, setting="a radius as published")
    yield (
        f"behind {PRINTED['pm_01', THEORETICAL]:.2f} ms stand {test['curvote']:,.0f}"
        f" queries a test and {radius['curvote']:,.0f} a radius, before any box"
    )
    for name in MECHANISMS:
        (exact,) = select(results, method=name, setting=EXACT)
        yield f"{name}: the exact agreement takes {exact['curvote']:.2f} ms"
