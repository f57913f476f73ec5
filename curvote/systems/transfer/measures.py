"""Metrics, methods and tables of transfer between servers."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from curvote.chain.measure import Look, Method, Metric
from curvote.chain.stage import TEXT, VECTOR, Table
from curvote.messages.measures import MAJORITY, MISCLASSIFICATION
from curvote.systems.common import study

F1: Final = Metric(
    "f1",
    "F1",
    better="higher",
    beside=MISCLASSIFICATION.name,
    spread=True,
    words="Harmonic mean of precision and recall: of the second class, or the mean of "
    "all where there are more",
)
BALANCED: Final = Metric(
    "balanced",
    "balanced accuracy",
    better="higher",
    beside=MISCLASSIFICATION.name,
    spread=True,
    words="Mean over the classes of the share that is recognised",
)
METRICS: Final = (MISCLASSIFICATION, F1, BALANCED)

ALIGNED: Final = Method(
    "aligned",
    "aligned",
    "Servers weighted by their known precision, and by how far they agree with the "
    "target.",
    Look("#d55e00", "o", width=2.6, size=6.5, above=6),
    rank=700,
)
PRECISION: Final = Method(
    "precision",
    "precision",
    "Servers weighted by the known precision of what they released.",
    Look("#0072b2", "s", width=2.0, size=5.5, above=5),
    rank=710,
)
ADAPT_SAMP: Final = Method(
    "adapt_samp",
    "AdaptSamp",
    "Servers weighted by how many records they hold.",
    Look("#009e73", "D"),
    rank=720,
)
ADAPT_HOMOG: Final = Method(
    "adapt_homog",
    "AdaptHomog",
    "The target's weight chosen for each query, sources in known proportions.",
    Look("#cc79a7", "^"),
    rank=730,
)
ADAPT_ALL: Final = Method(
    "adapt_all",
    "AdaptAll",
    "All weights chosen for each query, from noised values.",
    Look("#7f52a3", "v"),
    rank=740,
)
ADAPT_TAR: Final = Method(
    "adapt_tar",
    "AdaptTar",
    "The target's release alone.",
    Look("#6a717b", "p"),
    rank=750,
)
STATED_WEIGHTS: Final = Method(
    "stated",
    "stated weights",
    "Servers weighted as the pipeline states.",
    Look("#56b4e9", "h"),
    rank=705,
)
WEIGHED: Final = (ALIGNED, PRECISION, ADAPT_SAMP, ADAPT_HOMOG, ADAPT_ALL, ADAPT_TAR)
METHODS: Final = (*WEIGHED, STATED_WEIGHTS, MAJORITY)

POOLED: Final = Method(
    "pooled",
    "pooled, clean",
    "Logistic regression on the records of all servers together, without any noise.",
    Look("#22262b", "P", line=(0, (5, 2)), size=5.2),
    rank=770,
    study_only=True,
    reference=True,
)
TARGET: Final = Method(
    "target",
    "target, clean",
    "Logistic regression on the target's own records, without any noise.",
    Look("#22262b", "X", line=(0, (1, 2)), size=5.2),
    rank=780,
    study_only=True,
    reference=True,
)
CLEAN_METHODS: Final = (POOLED, TARGET)


# Whole numbers below 2^53, which a float holds exactly.
RELEASES: Final = Table(
    "releases", {"server": TEXT, "n": "int64", "values": VECTOR}, unit="message"
)
# How the release of one server alone does on the records of another.
CROSSED: Final = Table(
    "crossed",
    {
        "server": TEXT,
        "tested": TEXT,
        "n": "int64",
        "misclassification": "float64",
        "f1": "float64",
        "balanced": "float64",
    },
    side="client (study)",
    unit="score",
)
WEIGHTS: Final = Table(
    "weights",
    {
        "method": TEXT,
        "server": TEXT,
        "weight": "float64",
        "agreement": "float64",
        "agreement_se": "float64",
    },
    unit="server",
    optional=("agreement", "agreement_se"),
)


Codes = NDArray[np.int64]


def class_scores(labels: Codes, predictions: Codes, classes: int) -> dict[str, float]:
    """Return each metric of predictions (n,) for labels (n,), both codes.

    F1 is that of the second of two classes, of more the mean over those that occur (in
    labels or predictions); balanced accuracy is the mean recall of those in labels.
    """
    counts = study.confusion_matrix(labels, predictions, classes)
    correct, actual, predicted = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
    f1 = np.divide(
        2 * correct,
        actual + predicted,
        out=np.zeros(classes),
        where=actual + predicted > 0,
    )
    return {
        "misclassification": float((len(labels) - correct.sum()) / len(labels)),
        "f1": float(f1[1] if classes == 2 else f1[actual + predicted > 0].mean()),
        "balanced": study.mean_recall(counts),
    }
