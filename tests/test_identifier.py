"""Ids of clients: ordinary spellings of one id are one, all others keep their name."""

from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curvote.base.text import id_number, normalise_id
from curvote.data.tables.cells import identify
from curvote.ledger.cohort import sorted_ids

QUICK = settings(max_examples=200, deadline=None, derandomize=True)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("1000", "1000"),
        ("1000.0", "1000"),
        (" 1000\t", "1000"),
        ("\u00a01000.00 ", "1000"),
        ("-3.0", "-3"),
        ("01000", "01000"),
        ("p1000", "p1000"),
        ("1000.5", "1000.5"),
        ("1.0.0", "1.0.0"),
        ("Zoe\u0308", "Zo\u00eb"),
        ("A 1", "A 1"),
        ("", ""),
    ],
)
def test_spellings_of_one_id(given: str, expected: str) -> None:
    """NFC, trimmed, integral floats as integers; anything else is somebody else."""
    assert normalise_id(given) == expected


@QUICK
@given(st.text(max_size=12))
def test_an_id_that_was_spelt_stays(text: str) -> None:
    """Once is enough, and plain ids are left alone."""
    assert normalise_id(normalise_id(text)) == normalise_id(text)
    if text.isascii() and text.isalnum():
        assert normalise_id(text) == text


def test_a_file_and_the_ledger_compare_alike() -> None:
    """Both forms of an accent, a float and its spaces lead to one client in both."""
    for one, other in (("Zoe\u0308", "Zo\u00eb"), ("7.0", " 7"), ("a b ", "a b")):
        ids, marks = identify(pa.array([one, other]))
        assert len(set(zip(ids.tolist(), marks.tolist(), strict=True))) == 1
        assert sorted_ids([one]) == sorted_ids([other])
    assert identify(pa.array(["7.0"]))[0].tolist() == [7]


def test_the_numbers_of_existing_ids_do_not_move() -> None:
    """They name cohorts, and so releases: 63 bits of the text's own digest."""
    texts = ["p1", "A-1", "Zo\u00eb", "007", "1000.5", "+7"]
    digests = (blake2b(t.encode(), digest_size=16).digest() for t in texts)
    expected = [int.from_bytes(d[:8], "little") >> 1 for d in digests]
    ids, _ = identify(pa.array([*texts, "12", "-5"]))
    assert ids.tolist() == [*map(id_number, [*texts, "12.0", " -5"])]
    assert ids.tolist() == [*expected, 12, -5]
    numbers, _ = identify(pa.array(np.array([3, 1, 2])))
    assert numbers.tolist() == [3, 1, 2]
