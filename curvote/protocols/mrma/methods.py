"""What MRMA measures, in words and looks (Okabe & Ito 2008: safe for all eyes)."""

from __future__ import annotations

from typing import Final

from curvote.chain.measure import Look, Method

WEAK: Final = Method(
    "weak",
    "weak",
    "Mean error of the weak classifiers as they were trained.",
    Look("#838b94", "v", size=5),
    rank=10,
    spoken="one weak classifier",
)
REVERSED: Final = Method(
    "mr",
    "MR",
    "Mean error of the weak classifiers after reversal.",
    Look("#0072b2", "s"),
    rank=20,
)
AVERAGED: Final = Method(
    "ma",
    "MA",
    "The weighted average of MRMA, but nothing is reversed.",
    Look("#e69f00", "D", size=4),
    rank=30,
)
MRMA: Final = Method(
    "mrma",
    "MRMA",
    "Weak classifiers that do worse than a coin are reversed; those whose "
    "estimated utility then passes the cutoff are averaged, the better ones with "
    "more weight.",
    Look("#d55e00", "o", width=2.6, size=6.5, above=6),
    rank=40,
)
BEST_SINGLE: Final = Method(
    "best_single",
    "best single",
    "The one reversed classifier of highest estimated utility.",
    Look("#cc79a7", "^", size=5),
    rank=80,
)
VOTING: Final = Method(
    "voting",
    "voting",
    "Majority vote of classifiers trained on equal parts of all clients' reports.",
    Look("#8a6a4a", "d", "--", size=4.5),
    rank=130,
    study_only=True,
)
AVERAGING: Final = Method(
    "averaging",
    "averaging",
    "Plain mean of the same classifiers.",
    Look("#56b4e9", "X", "--", size=5),
    rank=140,
    study_only=True,
)
ALL_DATA: Final = Method(
    "all_data",
    "all data",
    "One classifier trained on noised reports of all clients, voters included.",
    Look("#009e73", "P", "--", size=5.2),
    rank=150,
    study_only=True,
)
HISTOGRAM: Final = Method(
    "histogram",
    "histogram",
    "The class that is larger in a record's cell of a coarse grid; every client "
    "sends a noised number for each cell.",
    Look("#a39a2e", "", ":", width=1.2),
    rank=180,
    study_only=True,
)
OWN: Final = (WEAK, REVERSED, AVERAGED, MRMA, BEST_SINGLE)
EVERY: Final = (*OWN, VOTING, AVERAGING, ALL_DATA, HISTOGRAM)
