"""Comparison of MRMA's printed numbers with curvote's: entries, rows, run summaries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field

from curvote.reproduce.entry import Reproduction


@dataclass(frozen=True)
class MrmaEntry(Reproduction):
    """One table or figure of MRMA, or a contest of protocols.

    In a ``contest`` each pipeline is a setting in which protocols compete. ``figure``
    is a module of this package, whose function ``figure`` draws unless another is
    named (``module:function``); ``published`` is a file of printed numbers; ``methods``
    are shown, all where it is empty. A cell agrees whose ``|z|`` is at most ``limit``:
    3, times sqrt(2) where the paper prints no standard deviation and its error is taken
    to be like ours; or whose difference is at most the ``points`` of its learner, where
    the paper leaves open what was fitted.
    """

    figure: str
    published: str | None = None
    _: KW_ONLY
    paper: str = "MRMA"
    methods: tuple[str, ...] = ()
    contest: bool = False
    limit: float = 3.0
    points: Mapping[str, float] = field(default_factory=dict)


_ALL = (
    MrmaEntry("table-1", "Table 1: diabetes", 500, "cells", "mrma_table1_diabetes.csv"),
    MrmaEntry(
        "table-2",
        "Table 2: employee attrition",
        500,
        "cells",
        "mrma_table2_employee.csv",
    ),
    MrmaEntry(
        "table-a1",
        "Table A.1: encodings without noise",
        500,
        "cells",
        "mrma_tableA1_encoding.csv",
        runs=("table-a1", "table-a1-initial"),
        limit=3 * 2**0.5,
        points={"logistic": 0.6, "svm": 1.5, "dwd": 0.6, "cg": 0.6},
    ),
    MrmaEntry(
        "figure-1",
        "Figure 1: what noise on z does to the weight omega",
        200,
        "weights",
        methods=("agreement",),
        quantity="value",
        measured="agreement g in %",
    ),
    MrmaEntry(
        "figure-2", "Figure 2: simulated curves, one server", 200, "lines:method_figure"
    ),
    MrmaEntry(
        "figure-3",
        "Figure 3: simulated curves, 25 servers",
        40,
        "lines:split_figure",
        methods=("federated", "mrma"),
    ),
    MrmaEntry("figure-4", "Figure 4: physical activity", 200, "lines:method_figure"),
    MrmaEntry("figure-5", "Figure 5: phonemes", 200, "lines:method_figure"),
    MrmaEntry(
        "figure-a1",
        "Figure A.1: one classifier of 500 reports",
        200,
        "boxes",
        methods=("weak", "clean"),
        runs=("figure-a1", "figure-a1-clean"),
    ),
    MrmaEntry(
        "figure-a6",
        "Figure A.6: total variation between values and their reports",
        200,
        "variation",
        methods=("total_variation",),
        quantity="value",
        measured="total variation in %",
    ),
    MrmaEntry(
        "cases-a2",
        "Table A.2: five ways to divide the clients",
        200,
        "lines:case_figure",
        methods=("ma", "mrma"),
    ),
    MrmaEntry(
        "cases-a3",
        "Table A.3: more clients for the weak classifiers",
        200,
        "lines:case_figure",
        methods=("weak", "mrma"),
    ),
    MrmaEntry(
        "beyond",
        "Our protocols and the published ones",
        100,
        "beyond",
        runs=(
            "beyond-simulated",
            "beyond-off-dominant",
            "beyond-unbalanced",
            "beyond-phonemes",
            "beyond-diabetes",
            "beyond-diabetes-distinct",
            "beyond-employee",
            "beyond-employee-distinct",
            "beyond-nhanes-2003",
            "beyond-stroke",
        ),
        contest=True,
    ),
)
REPRODUCTIONS = {entry.name: entry for entry in _ALL}
