"""The tables of a quantification before collection."""

from __future__ import annotations

from typing import Final

from curvote.chain.tables import FILE, TEXT, VECTOR, Table

_STUDY: Final = "client (study)"
MODEL: Final = Table("estimator", {"model": FILE}, side=_STUDY, unit="classifier")
# What an engine knows of the model around each record, in one file.
KNOWN: Final = Table("known", {"known": FILE}, side=_STUDY, unit="record")
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
