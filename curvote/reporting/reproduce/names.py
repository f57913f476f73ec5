"""What `reproduce` knows by name: the pipelines, the printed numbers, the figure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from curvote.errors import UserError, did_you_mean


@dataclass(frozen=True)
class Reproduction:
    """One table or figure of MRMA (Qin & Bai, JMLR 2026), or a contest of protocols.

    ``runs`` are its pipelines, in order; without any it has one of the same name. They
    are run ``replicates`` times unless the user says otherwise. In a ``contest`` each
    pipeline is a setting in which protocols compete. ``figure`` is a module of this
    package, ``published`` a file of printed numbers; ``methods`` are shown, all where
    it is empty. ``quantity`` is what the rows hold, in percent. A cell agrees whose
    ``|z|`` is at most ``limit``: 3, times sqrt(2) where the paper prints no standard
    deviation and its error is taken to be like ours; or whose difference is at most the
    ``points`` of its learner, where the paper leaves open what was fitted.
    """

    name: str
    title: str
    replicates: int
    figure: str
    methods: tuple[str, ...] = ()
    published: str | None = None
    runs: tuple[str, ...] = ()
    contest: bool = False
    quantity: str = "misclassification"
    limit: float = 3.0
    points: Mapping[str, float] = field(default_factory=dict)

    @property
    def pipelines(self) -> tuple[str, ...]:
        """The pipelines to run, in order."""
        return self.runs or (self.name,)


_ALL = (
    Reproduction(
        "table-1",
        "Table 1: diabetes",
        replicates=500,
        figure="cells",
        published="mrma_table1_diabetes.csv",
    ),
    Reproduction(
        "table-2",
        "Table 2: employee attrition",
        replicates=500,
        figure="cells",
        published="mrma_table2_employee.csv",
    ),
    Reproduction(
        "table-a1",
        "Table A.1: encodings without noise",
        replicates=500,
        figure="cells",
        published="mrma_tableA1_encoding.csv",
        runs=("table-a1", "table-a1-initial"),
        limit=3 * 2**0.5,
        points={"logistic": 0.6, "svm": 1.5, "dwd": 0.6, "cg": 0.6},
    ),
    Reproduction(
        "figure-1",
        "Figure 1: what noise on z does to the weight omega",
        replicates=200,
        figure="weights",
        methods=("agreement",),
        quantity="agreement g",
    ),
    Reproduction(
        "figure-2",
        "Figure 2: simulated curves, one server",
        replicates=200,
        figure="methods",
    ),
    Reproduction(
        "figure-3",
        "Figure 3: simulated curves, 25 servers",
        replicates=40,
        figure="servers",
        methods=("federated", "mrma"),
    ),
    Reproduction(
        "figure-4",
        "Figure 4: physical activity",
        replicates=200,
        figure="methods",
    ),
    Reproduction(
        "figure-5",
        "Figure 5: phonemes",
        replicates=200,
        figure="methods",
    ),
    Reproduction(
        "figure-a1",
        "Figure A.1: one classifier of 500 reports",
        replicates=200,
        figure="boxes",
        methods=("weak", "clean"),
        runs=("figure-a1", "figure-a1-clean"),
    ),
    Reproduction(
        "figure-a6",
        "Figure A.6: total variation between values and their reports",
        replicates=200,
        figure="variation",
        methods=("told_apart",),
        quantity="total variation",
    ),
    Reproduction(
        "cases-a2",
        "Table A.2: five ways to divide the clients",
        replicates=200,
        figure="cases",
        methods=("ma", "mrma"),
    ),
    Reproduction(
        "cases-a3",
        "Table A.3: more clients for the weak classifiers",
        replicates=200,
        figure="cases",
        methods=("weak", "mrma"),
    ),
    Reproduction(
        "beyond",
        "Our protocols and the published ones",
        replicates=100,
        figure="beyond",
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


def find(name: str) -> Reproduction:
    """Return the reproduction ``name``; an unknown one is a UserError."""
    if name in REPRODUCTIONS:
        return REPRODUCTIONS[name]
    known = ", ".join(REPRODUCTIONS)
    raise UserError(
        f"{name!r} names no table, figure or contest."
        f"{did_you_mean(name, REPRODUCTIONS)} There are: {known}."
    )
