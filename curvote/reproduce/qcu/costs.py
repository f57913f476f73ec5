"""Table 2: the milliseconds of a value, and queries, which the paper does not count."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Final

import numpy as np
from matplotlib.figure import Figure

from curvote.chain.measure import Look
from curvote.entropy import SystemEntropy
from curvote.mechanisms.law import product
from curvote.reproduce.drawing import fitting_legend, head, panels
from curvote.reproduce.gather import Evidence
from curvote.reproduce.qcu.channels import agreement, ours
from curvote.reproduce.qcu.known import Known, known_of, project_of, surface
from curvote.reproduce.qcu.laws import printed
from curvote.reproduce.rows import Row, finished, having
from curvote.utility.robustness.bound import bound
from curvote.utility.robustness.published import OMEGA, queries_of_a_test

across: Final = "epsilon"
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


def rows(name: str, found: Evidence) -> list[Row]:
    """Return times and queries by ``setting`` (what is made) and ``method``.

    ``group`` is "milliseconds", the median of seven on this machine, or "queries".
    """
    known = known_of(project_of(name, found), MODEL, RECORD)
    return finished([*_times(known), *_queries(known)])


def _times(known: Known) -> Iterator[Row]:
    yield _row(TIMES, SURFACE, _milliseconds(lambda: surface(known.question)))
    for name in MECHANISMS:
        for setting, make in _ways(known, name).items():
            told = {"method": name, "published": PRINTED.get((name, setting))}
            yield _row(TIMES, setting, _milliseconds(make)) | told


def _ways(known: Known, name: str) -> dict[str, Callable[[], object]]:
    channel, law = ours(name, EPSILON), printed(name, EPSILON)
    low, high = known.box.low, known.box.high
    return {
        EMPIRICAL: lambda: drawn(known, name),
        THEORETICAL: lambda: product(*map(law.law, known.values.T)).box(low, high),
        BOUND: lambda: bound(channel, known.values, known.box),
        EXACT: lambda: agreement(known.surface, channel),
    }


def drawn(known: Known, name: str) -> float:
    """Return the share of draws of our mechanism whose answer is the record's."""
    asked = known.question
    many = np.repeat(asked.records[:1], DRAWS, axis=0)
    places = list(asked.sensitive)
    many[:, places] = ours(name, EPSILON).draw(many[:, places], SystemEntropy())
    clean = asked.model.predict(asked.records[:1])
    return float(np.mean(asked.model.predict(many) == clean))


def _milliseconds(make: Callable[[], object]) -> float:
    took = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        make()
        took.append(1000 * (time.perf_counter() - start))
    return median(took)


def _queries(known: Known) -> Iterator[Row]:
    """Yield how often the classifier is asked for one record."""
    test = queries_of_a_test()
    yield _row(QUERIES, "a test as published", test)
    yield _row(QUERIES, "a radius as published", TESTS * test)
    right = TESTS * queries_of_a_test(OMEGA / TESTS)
    yield _row(QUERIES, "a radius at the stated risk", right)
    yield _row(QUERIES, EMPIRICAL, DRAWS)
    yield _row(QUERIES, f"{EXACT}, {BOUND}", int(known.box.queries.sum()))


def _row(group: str, setting: str, value: float) -> Row:
    return {
        "learner": MODEL,
        "group": group,
        "setting": setting,
        "quantity": "value",
        "curvote": float(value),
    }


def figure(given: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw printed times and those measured here, log."""
    drawn_, axes = panels(len(MECHANISMS), 2.6)
    for ax, name in zip(axes, MECHANISMS, strict=True):
        mine = having(given, method=name)
        for column, look in (
            ("published", Look("#a9b0b8", "s")),
            ("curvote", Look("#0072b2", "o")),
        ):
            pairs = [(row[column], row["setting"]) for row in mine if row[column]]
            ax.plot(
                *zip(*pairs, strict=True),
                ls="",
                marker=look.marker,
                color=look.colour,
                label="curvote" if column == "curvote" else "printed",
            )
        ax.set_xscale("log")
        ax.set_xlim(0.05, 2000)
        ax.set_xticks(_TICKS, [f"{tick:g}" for tick in _TICKS])
        ax.minorticks_off()
        ax.set_xlabel(TIMES)
        ax.grid(axis="x")
        head(ax, name)
    fitting_legend(drawn_, axes[0].get_legend_handles_labels()[0])
    return drawn_


def brief(given: Sequence[Row]) -> Sequence[Row]:
    """Return all rows."""
    return given


def said(given: Sequence[Row]) -> Iterator[str]:
    """Yield what stands behind the printed .24 ms."""
    (test,) = having(given, setting="a test as published")
    (radius,) = having(given, setting="a radius as published")
    yield (
        f"behind {PRINTED['pm_01', THEORETICAL]:.2f} ms stand {test['curvote']:,.0f}"
        f" queries a test and {radius['curvote']:,.0f} a radius, before any box"
    )
    for name in MECHANISMS:
        (exact,) = having(given, method=name, setting=EXACT)
        yield f"{name}: the exact agreement takes {exact['curvote']:.2f} ms"
