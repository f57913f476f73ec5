"""Tables that several systems share: clients, reports, votes and classifiers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import TEXT, VECTOR, Columns, Table
from curvote.curves.basis import VOLUNTEERS_BASES

CLIENTS: Final = Table(
    "clients",
    {
        **dict.fromkeys(("client_id", "label", "group"), "int64"),
        "curve": VECTOR,
        "record": TEXT,  # a public name, where the source has one
        "part": "int64",  # 1 for the publisher's test part
        "target": "float64",  # a number to be learnt, in the unit that facts state
    },
    side="client",
    unit="client",
    shared=True,
    optional=("record", "part", "target"),
)
ENCODED: Final = Table(
    "encoded",
    {
        **dict.fromkeys(("client_id", "label", "group"), "int64"),
        **dict.fromkeys(("coefficients", "z"), VECTOR),
        **dict.fromkeys(("clipped", "part"), "int64"),
    },
    side="client",
    unit="client",
    shared=True,
    optional=("part",),
)
CONSTANTS: Final = Table(
    "constants",
    {"name": TEXT, "value": VECTOR},
    side="public",
    unit="constant",
    shared=True,
)
# A row of the matrix that volunteers' curves made, and the basis that they chose.
BASIS_ROWS: Final = Table(
    "basis_rows",
    {"basis": TEXT, "value": VECTOR},
    side="public",
    unit="constant",
    when=lambda settings: settings.project.basis in VOLUNTEERS_BASES,
)


Array = NDArray[np.float64]

# What a row is for; the column is called ``arm`` for ever.
REPORT_VARIANTS: Final = ("mrma", "pooled")
WEAK_VARIANTS: Final = ("weak", "pooled", "all_data")

REPORTS: Final = Table(
    "reports", {"arm": REPORT_VARIANTS, "z": VECTOR, "label": "int8"}, unit="message"
)
FITTED_COLUMNS: Final = {
    "learner": "int64",
    "coef": VECTOR,
    "intercept": "float64",
    "n": "int64",
    "flagged": "bool",
}
WEAK: Final = Table("weak", {"arm": WEAK_VARIANTS, **FITTED_COLUMNS}, unit="classifier")
VOTES: Final = Table(
    "votes", {"learner": "int64", "n": "int64", "positive": "int64"}, unit="classifier"
)
ENSEMBLE: Final = Table(
    "ensemble",
    {
        "learner": "int64",
        "utility": "float64",
        "standard_error": "float64",
        "reversed": "bool",
        "weight": "float64",
        "none_passed": "bool",
        "weight_ma": "float64",
        "none_passed_ma": "bool",
    },
    unit="classifier",
)


def columns_of(rows: Iterable[Sequence[Any]], kinds: Mapping[str, Any]) -> Columns:
    """Return the columns of a table, of these NumPy types, from its rows."""
    values = [*rows]
    return {
        name: np.array([row[place] for row in values], dtype=kind)
        for place, (name, kind) in enumerate(kinds.items())
    }


def lines_of_variant(weak: Columns, name: str) -> tuple[Array, Array]:
    """Return coef (B, d) and intercept (B,) of the classifiers of one variant."""
    rows = weak["arm"] == WEAK_VARIANTS.index(name)
    return weak["coef"][rows], weak["intercept"][rows]


DIRECTIONS: Final = Table("directions", {"direction": VECTOR}, unit="message")
WHITENING: Final = Table(
    "whitening", {"matrix": VECTOR, "centre": "float64"}, unit="number"
)
CLASSIFIER: Final = Table(
    "classifier",
    {"coef": VECTOR, "intercept": "float64", "n": "int64"},
    unit="classifier",
)
