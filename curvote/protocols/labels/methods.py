"""Metrics and methods of private labels, and the tables of their scores."""

from __future__ import annotations

from typing import Final

from curvote.chain.measure import Look, Method, Metric
from curvote.protocols.majority.methods import MAJORITY

ACCURACY: Final = Metric(
    "accuracy",
    "accuracy on new {record}s",
    better="higher",
    sentence="is right on {value} of new {record}s",
    words="Share of new {record}s of which each method says the right class",
)
BALANCED: Final = Metric(
    "balanced_accuracy",
    "balanced accuracy",
    better="higher",
    beside=ACCURACY.name,
    spread=True,
    words="Mean over the classes of the share that is recognised",
)
ECE: Final = Metric(
    "ece",
    "calibration error",
    beside=ACCURACY.name,
    spread=True,
    figure=False,
    words="How far probabilities are from frequencies, mean over 15 bins",
)
HONEST: Final = Metric(
    "honest",
    "accuracy by codes alone",
    better="higher",
    beside=ACCURACY.name,
    spread=True,
    figure=False,
    words="What the server itself says, from codes that took no part in choosing",
)
HONEST_ERROR: Final = Metric(
    "honest_error",
    "standard error of what codes say",
    beside=ACCURACY.name,
    spread=True,
    figure=False,
    words="What the server states with its word on the accuracy",
)
METRICS: Final = (ACCURACY, BALANCED, ECE, HONEST, HONEST_ERROR)

LABELS: Final = Method(
    "labels",
    "private labels",
    "A learner trained on public features and one noised code of each label.",
    Look("#0072b2", "o", width=2.4, size=6, above=6),
    rank=600,
)
BAYES: Final = Method(
    "bayes",
    "Bayes",
    "The best rule there is, by the law that the data are drawn from.",
    Look("#22262b", "", (0, (1, 2)), width=1.2, above=2),
    rank=690,
    study_only=True,
    reference=True,
)
METHODS: Final = (LABELS, MAJORITY, BAYES)
