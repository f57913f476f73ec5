"""Damaged copies of raw files: each is refused in words of its own, none is used."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from curvote.base.errors import UserError
from curvote.data import raw_files
from tests import damaged_copies as copies
from tests import plain
from tests.damaged_copies import KINDS, ROWS, Kind
from tests.phoneme_file import sha256
from tests.real_files import MIRROR, needs_mirror

FIELDS = {"churn": 14, "stroke": 12, "heart": 14}

Damage = Callable[[bytes, Kind], bytes]
# What is said: of every table alike, or of one. {n}: rows, {more}: one more.
WORDS: dict[Damage, str | Mapping[str, str]] = {
    copies.truncated: "rows without {fields} fields separated by ',': 1 (line",
    copies.marked_label: {
        "churn": "1 lines carry marks of a merge or a patch (<<<<<<<, =======, >>>>>>>,"
        " +++): 3.",
        "stroke": "stroke, not one of 0, 1: 1 (line 3 '0+++')",
        "heart": "num, not one of 0, 1, 2, 3, 4: 1 (line 2 '0+++')",
    },
    copies.doubled: {
        "churn": "CreditScore, not a number: 1 (line {again} 'CreditScore')",
        "stroke": "rows without 12 fields separated by ',': 1 (line {more} has 23)",
        "heart": "{twice} rows instead of {n}",
    },
    copies.swapped: {
        "churn": "Geography, not one of France, Germany, Spain: {n} (line 2 '",
        "stroke": "gender, not one of Female, Male, Other: {n} (line 2 'Yes'",
        "heart": "age, impossible (not in 0 to 125): ",
    },
    copies.extra_row: {
        "churn": "RowNumber does not count the {more} rows from 1 up",
        "stroke": "column id: 1 values are repeated or no whole number, the first on"
        " line {end}",
        "heart": "{more} rows instead of {n}",
    },
    copies.other_mark: {
        "churn": "Age, not a number: 1 (line 2 'unknown')",
        "stroke": "bmi, not a number: ",
        "heart": "ca, not a number: ",
    },
    copies.dos_lines: "its schema, rows and counts are the published ones, though. To"
    " accept it: curvote data fetch {source} --accept-sha256 {sha256}",
    copies.bad_byte: "line 4 is no UTF-8 text: invalid start byte",
    copies.emptied: "is empty",
    copies.bad_crc: "CRC check failed",
    copies.cut_gzip: "is truncated: its gzip stream breaks off",
    copies.semicolons: {
        "churn": "its header is one field, 'RowNumber;",
        "stroke": "its header is one field, 'id;",
        "heart": "rows without 14 fields separated by ',': {n} (line 1 has 1",
    },
}
# The same for a SAS transport file; `test_xport` has those of its format.
HDL_DAMAGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "swapped": (copies.hdl_swapped, "SEQN is missing in "),
    "extra row": (copies.hdl_extra_row, "1 rows repeat a participant"),
    "row lost": (copies.hdl_row_lost, "{less} rows instead of {n}"),
    "other mark": (
        copies.hdl_other_mark,
        "LBDHDD is not within [1, 500] in 1, the first row 2 (-9)",
    ),
    "empty": (lambda _: b"", "is empty"),
    "bad CRC": (lambda data: copies.bad_crc(data, copies.HDL), "CRC check failed"),
    "cut gzip": (
        lambda data: copies.cut_gzip(data, copies.HDL),
        "its gzip stream breaks off",
    ),
}


def describe(root: Path, kind: Kind, original: bytes) -> None:
    """Give the project a sources.toml that knows one small edition of one file."""
    counts = ", ".join(f'"{label}" = {n}' for label, n in kind.counts.items())
    (root / "data" / "sources.toml").write_text(
        f"""
        [{kind.source}]
        dataset = "{kind.reader["name"]}"
        title = "Invented"
        file = "{kind.file}"
        url = "http://127.0.0.1:9/x"
        licence = "none"
        citation = "none"
        rows = {ROWS}
        counts = {{ {counts} }}
        [[{kind.source}.variants]]
        sha256 = "{sha256(original)}"
        origin = "invented"
        """
    )


def refusal(root: Path, kind: Kind, content: bytes) -> str:
    """Return what is said when a run needs this copy; nothing is stored."""
    pipeline = plain.TINY | {
        "source": kind.reader,
        "clients": {"train": 2, "vote": 2, "test": 2},
        "project": {"basis": "identity", "rescale": "min_max", "bounds": "public"},
        "train": {"count": 1, "size": 2},
    }
    project = plain.write(root, tiny=pipeline)
    path = project.raw / kind.file
    path.write_bytes(content)
    with pytest.raises(UserError) as error:
        plain.run(project)
    assert not any(f.is_file() for root in project.stores for f in root.rglob("*"))
    assert [each.name for each in project.raw.iterdir()] == [kind.file]
    assert str(path) in str(error.value)
    return str(error.value)


def expected(damage: Damage, name: str, rows: int, content: bytes) -> str:
    """Return the words that must stand in the message."""
    words = WORDS[damage]
    header = KINDS[name].header
    return (words if isinstance(words, str) else words[name]).format(
        n=rows,
        more=rows + 1,
        twice=2 * rows,
        again=rows + header + 1,
        end=rows + header + 1,
        fields=FIELDS[name],
        source=KINDS[name].source,
        sha256=sha256(content),
    )


@pytest.mark.parametrize("damage", WORDS, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("name", KINDS)
def test_a_damaged_table_is_refused(root: Path, name: str, damage: Damage) -> None:
    """The message names the place and what was found; no artifact comes of it."""
    original = copies.made(name)
    describe(root, KINDS[name], original)
    content = damage(original, KINDS[name])
    said = refusal(root, KINDS[name], content)
    assert expected(damage, name, ROWS, content) in said


@pytest.mark.parametrize("name", KINDS)
def test_the_undamaged_table_is_used(root: Path, name: str) -> None:
    """The small files are sound: only the damage is refused."""
    kind, original = KINDS[name], copies.made(name)
    describe(root, kind, original)
    (root / "data" / "raw" / kind.file).write_bytes(original)
    found = raw_files.locate(root, kind.source)
    assert found
    assert found.origin == "invented"


@needs_mirror
@pytest.mark.parametrize("damage", WORDS, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("name", KINDS)
def test_a_damaged_copy_of_the_real_table_is_refused(root, name, damage):
    """The published files themselves get the same words."""
    (root / "data" / "sources.toml").unlink()
    kind = KINDS[name]
    source = raw_files.find(kind.source)
    content = damage((Path(str(MIRROR)) / source.file).read_bytes(), kind)
    said = refusal(root, kind, content)
    assert expected(damage, name, source.rows, content) in said
    assert sha256(content) in said or "Replace it" in said


def check_hdl(root: Path, original: bytes, rows: int, damage: str) -> None:
    """Damage one file of HDL and ask for it: nothing but the copy lies there."""
    change, words = HDL_DAMAGES[damage]
    path = root / "data" / "raw" / copies.HDL.file
    path.write_bytes(original)
    assert raw_files.locate(root, copies.HDL.source)
    path.write_bytes(change(original))
    with pytest.raises(UserError) as error:
        raw_files.locate(root, copies.HDL.source)
    assert words.format(n=rows, less=rows - 1) in str(error.value)
    assert list((root / "data" / "raw").iterdir()) == [path]


@pytest.mark.parametrize("damage", HDL_DAMAGES)
def test_a_damaged_transport_file_is_refused(root: Path, damage: str) -> None:
    """With values that cannot be, rows too many or too few, or a broken stream."""
    original = copies.hdl()
    describe(root, copies.HDL, original)
    check_hdl(root, original, ROWS, damage)


@needs_mirror
@pytest.mark.parametrize("damage", HDL_DAMAGES)
def test_a_damaged_copy_of_the_real_hdl_is_refused(root: Path, damage: str) -> None:
    """The published file itself gets the same words."""
    (root / "data" / "sources.toml").unlink()
    source = raw_files.find(copies.HDL.source)
    original = (Path(str(MIRROR)) / source.file).read_bytes()
    check_hdl(root, original, source.rows, damage)
