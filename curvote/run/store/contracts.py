"""The contract of every table: columns, types, side of the trust boundary, checks.

Vectors are ``fixed_size_list<double>[d]``; categories are dictionary-encoded text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from curvote.errors import InternalError
from curvote.protocols.mrma.arms import REPORT_ARMS, WEAK_ARMS
from curvote.protocols.stage import Columns

VERSION: Final = 2
VECTOR: Final = "vector"
TEXT: Final = "text"


@dataclass(frozen=True)
class Contract:
    """Columns of a table beside ``replicate``, which every table has.

    ``columns`` maps a name to ``"vector"``, ``"text"``, a tuple of categories (the
    column holds their codes) or an Arrow type. ``side`` says who may read it. What is
    ``optional`` may be missing, for some rows or for all.
    """

    side: str
    columns: dict[str, Any]
    shared: bool = False
    optional: tuple[str, ...] = ()


CONTRACTS: Final[dict[str, Contract]] = {
    "clients": Contract(
        "client",
        {
            "client_id": pa.int64(),
            "label": pa.int64(),
            "group": pa.int64(),
            "curve": VECTOR,
        },
        shared=True,
    ),
    "encoded": Contract(
        "client",
        {
            "client_id": pa.int64(),
            "label": pa.int64(),
            "group": pa.int64(),
            "coefficients": VECTOR,
            "z": VECTOR,
            "clipped": pa.int64(),
        },
        shared=True,
    ),
    "constants": Contract("public", {"name": TEXT, "value": VECTOR}, shared=True),
    "reports": Contract(
        "server", {"arm": REPORT_ARMS, "z": VECTOR, "label": pa.int8()}
    ),
    "labels": Contract("server", {"label": pa.int8()}),
    "directions": Contract("server", {"direction": VECTOR}),
    "whitening": Contract("server", {"matrix": VECTOR, "centre": pa.float64()}),
    "classifier": Contract(
        "server", {"coef": VECTOR, "intercept": pa.float64(), "n": pa.int64()}
    ),
    "weak": Contract(
        "server",
        {
            "arm": WEAK_ARMS,
            "learner": pa.int64(),
            "coef": VECTOR,
            "intercept": pa.float64(),
            "n": pa.int64(),
            "flagged": pa.bool_(),
        },
    ),
    "votes": Contract(
        "server", {"learner": pa.int64(), "n": pa.int64(), "positive": pa.int64()}
    ),
    "ensemble": Contract(
        "server",
        {
            "learner": pa.int64(),
            "utility": pa.float64(),
            "standard_error": pa.float64(),
            "reversed": pa.bool_(),
            "weight": pa.float64(),
            "none_passed": pa.bool_(),
            "weight_ma": pa.float64(),
            "none_passed_ma": pa.bool_(),
        },
    ),
    "offers": Contract(
        "server",
        {
            "server": pa.int64(),
            "coef": VECTOR,
            "intercept": pa.float64(),
            "accepted": pa.bool_(),
            "reason": TEXT,
        },
    ),
    "arriving": Contract(
        "server", {"arrival": pa.int64(), "z": VECTOR, "label": pa.int8()}
    ),
    "candidates": Contract(
        "server",
        {
            "learner": pa.int64(),
            "coef": VECTOR,
            "intercept": pa.float64(),
            "birth": pa.int64(),
            "n": pa.int64(),
            "flagged": pa.bool_(),
        },
    ),
    "arrival_votes": Contract(
        "server", {"learner": pa.int64(), "n": pa.int64(), "positive": pa.int64()}
    ),
    "standing": Contract(
        "server",
        {
            "arrival": pa.int64(),
            "learner": pa.int64(),
            "n": pa.float64(),
            "positive": pa.float64(),
            "squares": pa.float64(),
            "utility": pa.float64(),
            "standard_error": pa.float64(),
            "reversed": pa.bool_(),
            "weight": pa.float64(),
        },
    ),
    "history": Contract(
        "server",
        {
            "arrival": pa.int64(),
            "votes": pa.int64(),
            "added": pa.int64(),
            "incumbent_n": pa.int64(),
            "incumbent_positive": pa.int64(),
            "utility": pa.float64(),
            "standard_error": pa.float64(),
            "dropped": pa.bool_(),
            "passed": pa.int64(),
            "none_passed": pa.bool_(),
            "coef": VECTOR,
            "intercept": pa.float64(),
        },
    ),
    "scores": Contract(
        "client (study)",
        {
            "protocol": TEXT,
            "epsilon": pa.float64(),
            "learner": TEXT,
            "method": TEXT,
            "misclassification": pa.float64(),
            "none_passed": pa.bool_(),
            "group": TEXT,
        },
        optional=("epsilon", "learner", "group"),
    ),
}


def to_arrow(name: str, replicate: int, columns: Columns) -> pa.Table:
    """Return one replicate of table ``name``, checked against its contract.

    Wrong columns, unequal lengths, NaN, infinities or missing values: InternalError.
    """
    contract = CONTRACTS[name]
    rows = len(next(iter(columns.values())))
    absent = set(contract.optional) - set(columns)
    columns = columns | {column: np.full(rows, None) for column in absent}
    if set(columns) != set(contract.columns):
        raise InternalError(f"{name}: columns {sorted(columns)} break the contract")
    if (replicate == -1) and not contract.shared:
        raise InternalError(f"{name} must name its replicate")
    arrays = {
        column: _array(f"{name}.{column}", kind, columns[column])
        for column, kind in contract.columns.items()
    }
    for column, array in arrays.items():
        if array.null_count and column not in contract.optional:
            raise InternalError(f"{name}.{column} has missing values")
    if {len(array) for array in arrays.values()} != {rows}:
        raise InternalError(f"{name}: columns of different lengths")
    return pa.table({"replicate": pa.array(np.full(rows, replicate)), **arrays})


def _array(name: str, kind: Any, values: np.ndarray) -> pa.Array:
    if np.issubdtype(values.dtype, np.floating) and not np.isfinite(values).all():
        raise InternalError(f"{name} holds NaN or infinite values")
    if kind == VECTOR:
        flat = pa.array(np.ascontiguousarray(values, dtype=np.float64).ravel())
        return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
    if kind == TEXT:
        return pa.array(values, type=pa.string()).dictionary_encode()
    if isinstance(kind, tuple):
        codes = pa.array(values.astype(np.int8))
        return pa.DictionaryArray.from_arrays(codes, pa.array(kind))
    return pa.array(values).cast(kind)


def to_columns(name: str, table: pa.Table) -> Columns:
    """Return the columns as numpy arrays: vectors (n, d), categories as codes."""
    kinds = CONTRACTS[name].columns
    return {column: _numpy(kind, table[column]) for column, kind in kinds.items()}


def _numpy(kind: Any, column: pa.ChunkedArray) -> np.ndarray:
    array = column.combine_chunks()
    if kind == VECTOR:
        width = array.type.list_size
        return np.asarray(array.flatten().to_numpy()).reshape(-1, width)
    if isinstance(kind, tuple):
        codes = {category: code for code, category in enumerate(kind)}
        found = np.array([codes[c] for c in array.dictionary.to_pylist()], np.int8)
        return np.asarray(found[array.indices.to_numpy()])
    return np.asarray(array.to_numpy(zero_copy_only=False))
