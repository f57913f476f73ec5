"""Entries of QCU: figures computed at once, without runs."""

from functools import partial

from curvote.papers import reproduction
from curvote.papers.reproduction import Paper

QcuEntry = partial(reproduction.Entry, paper="QCU", replicates=1, runs=())
CurveEntry = partial(
    QcuEntry,
    place="curves:model",
    quantity="agreement",
    measured=(
        "agreement with the clean answer in %; paper drawn, curvote exact as"
        " published, corrected by our mechanisms"
    ),
)

_ALL = (
    QcuEntry(
        name="qcu-figure-2",
        title="Figure 2: a classifier of one number under Laplace noise",
        place="concentration:example",
        quantity="concentration",
    ),
    QcuEntry(
        name="qcu-figure-3",
        title="Figure 3: the robustness radius of a classifier of two numbers",
        place="boxes:radius",
        quantity="value",
        measured="radius around (.5, .5)",
    ),
    QcuEntry(
        name="qcu-figure-4",
        title="Figure 4: concentration of the mechanisms at .5 against theta",
        place="concentration:theta",
        quantity="concentration",
    ),
    QcuEntry(
        name="qcu-figure-5",
        title="Figure 5: the hyperrectangle of the classifier of Figure 3",
        place="boxes:rectangle",
        quantity="value",
        measured="sides of the box around (.5, .5); agreement in % where it says so",
    ),
    CurveEntry(name="qcu-figure-6", title="Figure 6: stroke, a record of age 79"),
    CurveEntry(name="qcu-figure-7", title="Figure 7: churn, a record of age 22"),
    QcuEntry(
        name="qcu-figure-8",
        title="Figures 8 and 15: digits of 49 pixels, the first two images",
        place="curves:digit",
        quantity="agreement",
        measured="agreement with the clean answer in %, drawn; another network",
    ),
    CurveEntry(name="qcu-figure-9", title="Figure 9: stroke, the first record"),
    QcuEntry(
        name="qcu-figure-10",
        title="Figure 10: decision maps of stroke, with box and noise",
        place="boxes:map",
        quantity="share",
        measured="shares in % of what one box covers",
    ),
    CurveEntry(name="qcu-figure-11", title="Figure 11: stroke, logistic, 100 records"),
    CurveEntry(name="qcu-figure-12", title="Figure 12: stroke, forest, 100 records"),
    CurveEntry(name="qcu-figure-13", title="Figure 13: churn, logistic, 100 records"),
    CurveEntry(name="qcu-figure-14", title="Figure 14: churn, forest, 50 records"),
    QcuEntry(
        name="qcu-figure-16",
        title="Figure 16: digits of 49 pixels, ten images",
        place="curves:digit",
        quantity="agreement",
        measured="agreement with the clean answer in %, drawn; another network",
    ),
    QcuEntry(
        name="qcu-table-2",
        title="Table 2: what a value costs",
        place="curves:cost",
        quantity="value",
        measured="milliseconds, and queries of the classifier",
    ),
)
REPRODUCTIONS = {entry.name: entry for entry in _ALL}


PAPER = Paper("curvote.papers.qcu", REPRODUCTIONS)
compare, laid_out, agreement = PAPER.compare, PAPER.laid_out, PAPER.agreement
