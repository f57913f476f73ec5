"""Metrics, methods and tables of a quantification before collection."""

from __future__ import annotations

from functools import partial
from typing import Final

from curvote.chain.measure import Look, Method, Metric
from curvote.chain.stage import FILE, TEXT, VECTOR, Table
from curvote.messages.measures import AGREEMENT
from curvote.systems.labels.metrics import ACCURACY, BALANCED

# What is sent without any projection: the features themselves.
FEATURES = ""

WORST: Final = Metric(
    "worst",
    "agreement of the worst {record}",
    better="higher",
    figure=False,
    words="Least agreement among the {record}s",
)
BOUND: Final = Metric(
    "bound",
    "box bound on agreement",
    better="higher",
    figure=False,
    words="Chance that the noise stays in a box in which the answer never changes",
)
METRICS: Final = (AGREEMENT, WORST, BOUND, ACCURACY, BALANCED)

RECOMMENDED: Final = Method(
    "recommended",
    "recommended",
    "What does best on one half of the records, measured on the other half.",
    Look("#0072b2", "o", width=2.4, size=6, above=6),
    rank=900,
)
EQUAL: Final = Method(
    "equal split",
    "equal split",
    "The first mechanism of the pipeline on each feature, with an equal share.",
    Look("#d55e00", "s"),
    rank=901,
)
VECTOR_METHOD: Final = Method(
    "jointly",
    "jointly",
    "The first mechanism of the pipeline that takes a record as a whole.",
    Look("#009e73", "^"),
    rank=902,
)
OUTPUT: Final = Method(
    "output",
    "own answer",
    "The client runs the model and randomises its answer.",
    Look("#7f52a3", "D", "--"),
    rank=903,
)
_floor = partial(Method, reference=True, free=True)
WITHHOLD: Final = _floor(
    "withhold",
    "nothing sent",
    "A public value stands in the place of each sensitive feature: epsilon 0.",
    Look("#22262b", "", (0, (1, 2)), width=1.6, above=2),
    rank=990,
)
DECODED: Final = _floor(
    "withhold decoded",
    "nothing, decoded",
    "The likeliest answer given the other features and public records: epsilon 0.",
    Look("#56616c", "", (0, (4, 2)), width=1.4, above=2),
    rank=991,
)
WITHOUT: Final = _floor(
    "without",
    "trained without",
    "A model trained without the sensitive features: epsilon 0.",
    Look("#8a6d3b", "", (0, (6, 2, 1, 2)), width=1.4, above=2),
    rank=992,
)
CLEAN: Final = Method(
    "clean answers",
    "clean answers",
    "The model on records without noise: no privacy.",
    Look("#9aa3ad", "", "-", width=1.2, above=2),
    rank=993,
    reference=True,
)
FLOORS: Final = (WITHHOLD, DECODED, WITHOUT)
METHODS: Final = (RECOMMENDED, EQUAL, VECTOR_METHOD, OUTPUT, *FLOORS, CLEAN)


_STUDY: Final = "client (study)"
MODEL: Final = Table("estimator", {"model": FILE}, side=_STUDY, unit="classifier")
# What an engine knows of the model around each record, in one file.
PROFILES: Final = Table("known", {"known": FILE}, side=_STUDY, unit="record")
# One row a deployment; the vectors have an entry for each record.
AGREED: Final = Table(
    "agreed",
    {
        **dict.fromkeys(("deployment", "words", "evidence"), TEXT),
        "drawn": "int64",
        "bounded": "bool",
        **dict.fromkeys(
            ("agreement", "lower", "upper", "bound", "right", "queries"), VECTOR
        ),
    },
    side=_STUDY,
    unit="score",
)
RECOMMENDED_TABLE: Final = Table(
    "recommended",
    dict.fromkeys(("deployment", "words", "reason", "reaches"), TEXT),
    side=_STUDY,
    unit="score",
)
