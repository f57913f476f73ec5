"""Entries of DTK: its tables and figures, with pipelines and modules."""

from __future__ import annotations

from functools import partial

from curvote.papers import reproduction
from curvote.papers.reproduction import Paper

DtkEntry = partial(reproduction.Entry, paper="DTK")

_ALL = (
    DtkEntry(
        "table-1-dtk",
        "Table 1: where the regimes of privacy end",
        1,
        "table_1",
        runs=(),
        quantity="value",
        measured="paper printed, curvote by brute force over (4), corrected formula",
    ),
    DtkEntry(
        "figure-1-dtk",
        "Figure 1: excess risk and its regimes against epsilon",
        1,
        "figure_1",
        runs=(),
        quantity="value",
        measured="natural logarithm of the excess risk by (4)",
    ),
    DtkEntry(
        "figure-2-dtk",
        "Figure 2: the regression functions of target and sources",
        1,
        "figure_2",
        runs=(),
        quantity="value",
        measured="probability of class 1",
    ),
    DtkEntry(
        "figure-3-dtk",
        "Figure 3: what a source adds, 100 records each",
        100,
        "figure_3",
        quantity="accuracy",
    ),
    DtkEntry(
        "figure-4-dtk",
        "Figure 4: accuracy against epsilon, 500 records each",
        100,
        "figure_4",
        quantity="accuracy",
    ),
    DtkEntry(
        "figure-5-dtk",
        "Figure 5: 500 records over m + 1 servers",
        10,
        "figure_5",
        quantity="accuracy",
    ),
    DtkEntry(
        "figure-6-dtk",
        "Figure 6: trained at one hospital, tested at another",
        1,
        "figure_6",
        runs=(),
        quantity="accuracy",
        measured="accuracy in %, 100 training records, 200 splits, no noise",
    ),
    DtkEntry(
        "figure-7-dtk",
        "Figure 7: four hospitals, target Hungary",
        200,
        "figure_7",
        quantity="accuracy",
        measured="accuracy and F1 in %",
    ),
)
REPRODUCTIONS = {entry.name: entry for entry in _ALL}


_PAPER = Paper("curvote.papers.dtk", REPRODUCTIONS)
compare, laid_out, agreement = _PAPER.compare, _PAPER.laid_out, _PAPER.agreement
