"""The file of codes: one Parquet table with all that is public, under a SHA-256."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.labels.plain import NONE
from curvote.strict_json import canonical_json, parse_json

FORMAT: Final = 1
_KEY: Final = b"curvote.codes"
_MOST_BYTES = 1 << 26


def write_codes(codes: Any, path: Path) -> None:
    """Write `Codes` to ``path``; true labels are a UserError."""
    if codes.encoder == NONE:
        raise UserError(
            "the codes are true labels, not noised; they are never written."
        )
    columns = {"code": np.ascontiguousarray(codes.values)}
    if codes.prior is not None:
        columns["prior"] = np.ascontiguousarray(codes.prior)
    about = {
        "format": FORMAT,
        "encoder": codes.encoder,
        "epsilon": codes.epsilon,
        "classes": codes.classes.tolist(),
        "params": dict(codes.params),
        "kinds": {name: it.dtype.str for name, it in columns.items()},
        "shapes": {name: list(it.shape) for name, it in columns.items()},
    }
    about["sha256"] = _content_digest(about, columns)
    table = pa.table({name: _arrow_column(values) for name, values in columns.items()})
    table = table.replace_schema_metadata({_KEY: canonical_json(about)})
    try:
        pq.write_table(table, path)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error}.") from None


def _arrow_column(values: NDArray[Any]) -> pa.Array:
    flat = pa.array(values.ravel())
    if values.ndim == 1:
        return flat
    return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])


def _content_digest(about: dict[str, Any], columns: dict[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(canonical_json(about))
    for name in sorted(columns):
        digest.update(columns[name].data)
    return digest.hexdigest()


def read_codes(path: Path) -> dict[str, Any]:
    """Return the fields of the codes at ``path``; no or altered codes: UserError."""
    table = _read_table(path)
    written = (table.schema.metadata or {}).get(_KEY)
    if written is None:
        raise UserError(f"{path} is no file of codes: it does not say how it was made.")
    try:
        about = parse_json(written, _MOST_BYTES)
        digest, columns = about.pop("sha256"), _read_columns(table, about)
        intact = digest == _content_digest(about, columns) and about["format"] == FORMAT
    except (LookupError, TypeError, ValueError, AttributeError, pa.ArrowException):
        intact = False
    if not intact:
        raise UserError(
            f"{path} was altered after it was written: its SHA-256 is not the one that"
            " it states."
        )
    return {
        "values": columns["code"],
        "classes": np.array(about["classes"]),
        "epsilon": about["epsilon"],
        "encoder": about["encoder"],
        "params": about["params"],
        "prior": columns.get("prior"),
    }


def _read_table(path: Path) -> pa.Table:
    try:
        return pq.read_table(path)
    except FileNotFoundError:
        raise UserError(f"there is no file {path}.") from None
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"{path} is no Parquet file: {error}") from None


def _read_columns(table: pa.Table, about: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Return the columns as they were written; a ValueError if they cannot be."""
    columns = {}
    for name, shape in about["shapes"].items():
        column = table[name].combine_chunks()
        flat = column if len(shape) == 1 else column.flatten()
        values = flat.to_numpy(zero_copy_only=False).reshape(shape)
        if values.dtype.str != about["kinds"][name]:
            raise ValueError(name)
        columns[name] = values
    return columns
