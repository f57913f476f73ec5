"""Metrics, methods and tables of transfer between servers."""

from __future__ import annotations

from typing import Final

from curvote.chain.measure import Look, Method, Metric
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.measures import MISCLASSIFICATION

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
STATED: Final = Method(
    "stated",
    "stated weights",
    "Servers weighted as the pipeline states.",
    Look("#56b4e9", "h"),
    rank=705,
)
WEIGHED: Final = (ALIGNED, PRECISION, ADAPT_SAMP, ADAPT_HOMOG, ADAPT_ALL, ADAPT_TAR)
METHODS: Final = (*WEIGHED, STATED, MAJORITY)
