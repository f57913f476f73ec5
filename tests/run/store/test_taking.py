"""Stored repetitions as blocks held them: a file of them is the one from nothing."""

import json
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curvote.chain.measure import SCORES
from curvote.chain.stage import ROWS, Columns, Table
from curvote.pipeline.store import tables
from curvote.pipeline.store.arrow import to_arrow
from curvote.pipeline.store.artifacts import MANIFEST, Artifact
from curvote.pipeline.store.growth import first_replicates
from curvote.pipeline.store.parquet import Batch, merge_blocks
from tests.run.store.test_kinds import TABLE as KINDS
from tests.run.store.test_kinds import columns
from tests.run.store.test_merging import SIZES, cut

SHAPE = (2, 3)
NUMBERS = Table("numbers", {"n": ROWS})


@pytest.fixture(autouse=True, scope="module")
def _small() -> Any:
    """Let a shard have 8 rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "SHARD", 8)
        yield


def same(folder: Path, every: list[Batch], kept: int) -> bool:
    """Say whether a stored table and the rest of the rows give the file of all rows."""
    nothing, there, made = (folder / at / "t.parquet" for at in ("a", "b", "c"))
    for path in (nothing, there, made):
        path.parent.mkdir()
    whole = merge_blocks(nothing, every)
    before = [(place, batch) for place, batch in every if place[0] < kept + 1]
    told = {"tables": {"t": merge_blocks(there, before)}}
    (there.parent / MANIFEST).write_text(json.dumps(told))
    taken = first_replicates(Artifact(there.parent), "t", kept)
    after = [(place, batch) for place, batch in every if place[0] >= kept]
    entry = merge_blocks(made, chain(taken, after))
    return entry == whole and made.read_bytes() == nothing.read_bytes()


def placed(table: Table, pieces: list[Columns]) -> list[Batch]:
    """Return the columns of some repetitions as batches."""
    return [
        ((n,), to_arrow(table, ("replicate",), (n,), piece))
        for n, piece in enumerate(pieces)
    ]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sizes=SIZES, kept=st.integers(0, 6))
def test_row_groups_follow_from_the_rows_alone(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], kept: int
) -> None:
    """Repetitions smaller and larger than a shard, any number of them taken over."""
    every = cut(sizes, [1] * len(sizes))
    assert same(tmp_path_factory.mktemp("taken"), every, kept)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pieces=st.lists(columns(st.integers(1, 5), SHAPE), min_size=2, max_size=4))
def test_columns_of_every_kind_are_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[Columns]
) -> None:
    """Categories of which some do not occur, text, bits, vectors, matrices, files."""
    assert same(tmp_path_factory.mktemp("taken"), placed(KINDS, pieces), 1)


@pytest.mark.parametrize("kind", ["uint8", "int64"])
def test_whole_numbers_keep_their_kind(tmp_path: Path, kind: str) -> None:
    """They stand as the bytes of each row."""
    pieces = [{"n": np.arange(12, dtype=kind).reshape(4, 3) + n} for n in range(3)]
    assert same(tmp_path, placed(NUMBERS, pieces), 2)


def test_missing_values_stay_missing(tmp_path: Path) -> None:
    """Scores have ends for some rows, and groups for none or for some."""
    rows = {
        "method": np.array(["mr", "weak"], dtype=object),
        "metric": np.array(["error", "error"], dtype=object),
        "value": np.array([0.25, 0.5]),
        "lower": np.array([None, 0.125], dtype=object),
        "upper": np.array([None, 0.75], dtype=object),
    }
    some = rows | {"group": np.array(["women", None], dtype=object)}
    none = rows | {"group": np.array([None, None], dtype=object)}
    assert same(tmp_path, placed(SCORES, [some, none, some]), 2)
