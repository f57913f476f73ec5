"""Damaged and changed copies of a raw file are refused, each with its reason."""

from pathlib import Path

import pytest

from curvote.base.errors import UserError
from curvote.data import raw_files
from curvote.data.public import phonemes
from curvote.data.raw_files import DamagedError
from tests.phoneme_file import (
    TEXT,
    bad_crc,
    extra_row,
    packed,
    put,
    replace_cell,
    sha256,
)

DAMAGED: dict[str, tuple[bytes, str]] = {
    "truncated gzip": (packed()[:-500], "truncated"),
    "bad CRC": (bad_crc(), "CRC check failed"),
    "no gzip inside": (b"\x1f\x8b" + b"junk" * 9, "damaged"),
    "empty": (b"", "is empty"),
    "empty gzip": (packed(""), "is empty"),
}


def _without_column() -> str:
    return "\n".join(line.partition(",")[2] for line in TEXT.split("\n"))


CHANGED: dict[str, tuple[str, str]] = {
    "missing column": (_without_column(), "column row.names is missing"),
    "wrong class": (
        replace_cell(TEXT, 4, 257, "zz"),
        "line 4, column g is 'zz', not one of aa, ao",
    ),
    "no value": (
        replace_cell(TEXT, 7, 12, ""),
        "line 7, column x.12 has no value",
    ),
    "NaN": (
        replace_cell(TEXT, 7, 12, "NaN"),
        "line 7, column x.12 has no value",
    ),
    "infinite": (
        replace_cell(TEXT, 2, 1, "inf"),
        "line 2, column x.1 is inf, not a finite",
    ),
    "text": (
        replace_cell(TEXT, 3, 5, "1.2.3"),
        "line 3, column x.5 is '1.2.3', not a finite",
    ),
    "no speaker": (
        replace_cell(TEXT, 3, 258, ""),
        "line 3, column speaker has no value",
    ),
    "extra row": (extra_row(), "21 rows instead of 20, sh 5 instead of 4"),
    "extra field": (TEXT.replace(".sa1", ".sa1,1"), "more fields than its header"),
    "one extra field": (TEXT.replace(".s3.sa1", ",x", 1), "saw 260"),
    "other label": (
        replace_cell(TEXT, 2, 257, "sh"),
        "wrong counts: aa 3 instead of 4, sh 5 instead of 4",
    ),
    "cut in a row": (TEXT[: len(TEXT) // 2], "has no value"),
    "cut between rows": (TEXT[: TEXT.rindex("\n20,") + 1], "19 rows instead of 20"),
    "a web page": ("<html>Not found</html>\n", "column row.names is missing"),
    "no text": ("\x00\udcff".encode("utf-8", "surrogatepass").hex() + "\xff", "schema"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_unreadable_bytes_are_refused(root: Path, case: str) -> None:
    """Each kind of damage has its message, at finding and at loading."""
    content, message = DAMAGED[case]
    path = put(root, content, "phoneme.data.gz")
    for attempt in (
        lambda: raw_files.locate(root, "phonemes"),
        lambda: phonemes.load_curves(path),
    ):
        with pytest.raises(DamagedError, match=message):
            attempt()


@pytest.mark.parametrize("case", CHANGED)
def test_changed_content_is_refused(root: Path, case: str) -> None:
    """The message names the place, what was found, and both digests."""
    content, message = CHANGED[case]
    put(root, content)
    with pytest.raises(UserError) as error:
        raw_files.locate(root, "phonemes")
    assert message in str(error.value)
    assert sha256(content) in str(error.value)
    assert sha256(TEXT) in str(error.value)


def test_many_faults_are_listed_briefly(root: Path) -> None:
    """Five faults are shown, the others counted."""
    path = put(root, TEXT.replace(",iy,", ",IY,").replace(",aa,", ",AA,"))
    with pytest.raises(UserError, match=r"not one of.*; and 3 more"):
        phonemes.load_curves(path)
