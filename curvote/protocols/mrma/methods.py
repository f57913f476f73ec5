"""Methods of MRMA, in words and looks (Okabe & Ito 2008: safe for all eyes)."""

from __future__ import annotations

from typing import Final

from curvote.chain.measure import Look, Method

WEAK_METHOD: Final = Method(
    "weak",
    "weak",
    "Mean error of the weak classifiers as they were trained.",
    Look("#838b94", "v", size=5),
    rank=10,
    short_phrase="one weak classifier",
)
REVERSED_METHOD: Final = Method(
    "mr",
    "MR",
    "Mean error of the weak classifiers after reversal.",
    Look("#0072b2", "s"),
    rank=20,
)
AVERAGED_METHOD: Final = Method(
    "ma",
    "MA",
    "The weighted average of MRMA, but nothing is reversed.",
    Look("#e69f00", "D", size=4),
    rank=30,
)
MRMA_METHOD: Final = Method(
    "mrma",
    "MRMA",
    "Weak classifiers that do worse than a coin are reversed; those whose "
    "estimated utility then passes the cutoff are averaged, the better ones with "
    "more weight.",
    Look("#d55e00", "o", width=2.6, size=6.5, above=6),
    rank=40,
)
BEST_SINGLE_METHOD: Final = Method(
    "best_single",
    "best single",
    "The one reversed classifier of highest estimated utility.",
    Look("#cc79a7", "^", size=5),
    rank=80,
)
VOTING_METHOD: Final = Method(
    "voting",
    "voting",
    "Majority vote of classifiers trained on equal parts of all clients' reports.",
    Look("#8a6a4a", "d", "--", size=4.5),
    rank=130,
    study_only=True,
)
AVERAGING_METHOD: Final = Method(
    "averaging",
    "averaging",
    "Plain mean of the same classifiers.",
    Look("#56b4e9", "X", "--", size=5),
    rank=140,
    study_only=True,
)
ALL_DATA_METHOD: Final = Method(
    "all_data",
    "all data",
    "One classifier trained on noised reports of all clients, voters included.",
    Look("#009e73", "P", "--", size=5.2),
    rank=150,
    study_only=True,
)
HISTOGRAM_METHOD: Final = Method(
    "histogram",
    "histogram",
    "The class that is larger in a record's cell of a coarse grid; every client "
    "sends a noised number for each cell.",
    Look("#a39a2e", "", ":", width=1.2),
    rank=180,
    study_only=True,
)
ENSEMBLE_METHODS: Final = (
    WEAK_METHOD,
    REVERSED_METHOD,
    AVERAGED_METHOD,
    MRMA_METHOD,
    BEST_SINGLE_METHOD,
)
ALL_METHODS: Final = (
    *ENSEMBLE_METHODS,
    VOTING_METHOD,
    AVERAGING_METHOD,
    ALL_DATA_METHOD,
    HISTOGRAM_METHOD,
)
