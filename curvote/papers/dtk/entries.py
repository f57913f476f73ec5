"""Entries of DTK: its tables and figures, with pipelines and modules."""

from functools import partial

from curvote.papers import reproduction
from curvote.papers.reproduction import Paper

DtkEntry = partial(reproduction.Entry, paper="DTK")
FormulaEntry = partial(DtkEntry, replicates=1, runs=())
AccuracyEntry = partial(DtkEntry, quantity="accuracy")

_ALL = (
    FormulaEntry(
        name="table-1-dtk",
        title="Table 1: where the regimes of privacy end",
        place="formulas:regime",
        quantity="value",
        measured="paper printed, curvote by brute force over (4), corrected formula",
    ),
    FormulaEntry(
        name="figure-1-dtk",
        title="Figure 1: excess risk and its regimes against epsilon",
        place="formulas:risk",
        quantity="value",
        measured="natural logarithm of the excess risk by (4)",
    ),
    FormulaEntry(
        name="figure-2-dtk",
        title="Figure 2: the regression functions of target and sources",
        place="formulas:regression",
        quantity="value",
        measured="probability of class 1",
    ),
    AccuracyEntry(
        "figure-3-dtk",
        "Figure 3: what a source adds, 100 records each",
        100,
        "simulations:source",
    ),
    AccuracyEntry(
        "figure-4-dtk",
        "Figure 4: accuracy against epsilon, 500 records each",
        100,
        "simulations:budget",
    ),
    AccuracyEntry(
        "figure-5-dtk",
        "Figure 5: 500 records over m + 1 servers",
        10,
        "simulations:servers",
    ),
    FormulaEntry(
        name="figure-6-dtk",
        title="Figure 6: trained at one hospital, tested at another",
        place="hospitals:pair",
        quantity="accuracy",
        measured="accuracy in %, 100 training records, 200 splits, no noise",
    ),
    AccuracyEntry(
        "figure-7-dtk",
        "Figure 7: four hospitals, target Hungary",
        200,
        "hospitals:combination",
        measured="accuracy and F1 in %",
    ),
)
REPRODUCTIONS = {entry.name: entry for entry in _ALL}


PAPER = Paper("curvote.papers.dtk", REPRODUCTIONS)
compare, laid_out, agreement = PAPER.compare, PAPER.laid_out, PAPER.agreement
