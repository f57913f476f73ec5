"""Columns of every kind come back from a file as they were, row group by row group."""

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from curvote.base.errors import InternalError
from curvote.chain.stage import BITS, FILE, MATRIX, TEXT, VECTOR, Columns, Table
from curvote.pipeline.store.arrow import to_arrow, to_columns

COLOURS = ("red", "green", "blue")
# Each kind and the numpy type in which stages see it.
KINDS: dict[Any, str] = {
    VECTOR: "float64",
    MATRIX: "float64",
    BITS: "bool",
    TEXT: "object",
    FILE: "object",
    COLOURS: "int8",
    "int8": "int8",
    "int64": "int64",
    "float64": "float64",
    "bool": "bool",
}
TABLE = Table("kinds", {str(kind): kind for kind in KINDS})
VALUES = {
    VECTOR: (finite := st.floats(allow_nan=False, allow_infinity=False)),
    MATRIX: finite,
    "float64": finite,
    COLOURS: st.integers(0, len(COLOURS) - 1),
    TEXT: st.text(st.characters(exclude_categories=["Cs"])),
    FILE: st.binary(),
}


@st.composite
def columns(
    draw: st.DrawFn, rows: st.SearchStrategy[int], shape: tuple[int, ...]
) -> Columns:
    """Return a column of each kind, equally long; a matrix has this shape."""
    n = draw(rows)
    shapes = {VECTOR: shape[:1], BITS: shape[:1], MATRIX: shape}
    return {
        str(kind): draw(
            arrays(dtype, (n, *shapes.get(kind, ())), elements=VALUES.get(kind))
        )
        for kind, dtype in KINDS.items()
    }


@st.composite
def repetitions(draw: st.DrawFn) -> list[Columns]:
    """Return the columns of one to three repetitions."""
    shape = draw(array_shapes(min_dims=2, max_dims=2, max_side=9))
    one = columns(st.integers(0, 5), shape)
    return draw(st.lists(one, min_size=1, max_size=3))


def _same(found: Columns, expected: Columns) -> None:
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name].dtype == values.dtype, name
        assert found[name].shape == values.shape, name
        assert np.array_equal(found[name], values), name
        if values.dtype.kind == "f":
            assert np.array_equal(np.signbit(found[name]), np.signbit(values)), name


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(repetitions())
def test_columns_of_every_kind_come_back(made: list[Columns]) -> None:
    """Each repetition from its row group, and all together; a table may be empty."""
    parts = [
        pa.Table.from_batches([to_arrow(TABLE, ("replicate",), (i,), own)])
        for i, own in enumerate(made)
    ]
    file = io.BytesIO()
    with pq.ParquetWriter(file, parts[0].schema) as writer:
        for part in parts:
            writer.write_table(part)
    stored = pq.ParquetFile(file)
    for i, own in enumerate(made):
        _same(to_columns(TABLE.name, parts[i]), own)
        if len(own[TEXT]):
            _same(to_columns(TABLE.name, stored.read_row_group(i)), own)
    together = {name: np.concatenate([own[name] for own in made]) for name in made[0]}
    _same(to_columns(TABLE.name, stored.read()), together)
    _same(to_columns(TABLE.name, pa.concat_tables(parts)), together)


@pytest.mark.parametrize("kind", [VECTOR, MATRIX, "float64"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_is_our_bug(kind: str, bad: float) -> None:
    """In a vector and in a matrix as in a plain column."""
    values = np.ones((2, *{VECTOR: (3,), MATRIX: (3, 2)}.get(kind, ())))
    values.flat[-1] = bad
    with pytest.raises(InternalError, match=r"t\.x holds NaN or infinite values"):
        to_arrow(Table("t", {"x": kind}), (), (), {"x": values})
