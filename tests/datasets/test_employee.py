"""The employee table: published counts, codes, one 0/1 feature for each category."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.data import raw_files
from curvote.data.public.published_tables import EMPLOYEE, EmployeeParameters
from tests.real_files import needs_mirror, real
from tests.tables import source

NAMES = [feature.name for feature in EMPLOYEE.schema.features]
TEXTS = {f.name: f.categories for f in EMPLOYEE.schema.features if f.categories}
HEADER = ",".join([*NAMES, "LeaveOrNot"])


def made(n: int = 40, seed: int = 1) -> list[list[str]]:
    """Return rows of the published layout with invented values."""
    rng = np.random.default_rng(seed)
    columns = [
        rng.choice(feature.categories, n)
        if feature.categories
        else rng.integers(feature.lower, feature.upper, n, endpoint=True).astype(str)
        for feature in EMPLOYEE.schema.features
    ]
    labels = rng.choice(["0", "1"], n)
    return [list(map(str, row)) for row in zip(*columns, labels, strict=True)]


def text(rows: list[list[str]]) -> bytes:
    """Return the file of these rows, without a final newline, as published."""
    return "\n".join([HEADER, *map(",".join, rows)]).encode()


def written(tmp_path: Path, rows: list[list[str]]) -> dict[str, Path]:
    """Write the file of these rows and return its place by name."""
    path = tmp_path / "Employee.csv"
    path.write_bytes(text(rows))
    return {"employee": path}


def test_codes_are_alphabetical(tmp_path: Path) -> None:
    """The codes of the published tables: the place among the sorted texts."""
    rows = made()
    found = EMPLOYEE.clients(EmployeeParameters(), written(tmp_path, rows))
    expected = [
        [
            sorted(TEXTS[name]).index(cell) if name in TEXTS else float(cell)
            for name, cell in zip(NAMES, row[:-1], strict=True)
        ]
        for row in rows
    ]
    np.testing.assert_array_equal(found["curve"], expected)
    assert found["label"].tolist() == [int(row[-1]) for row in rows]


def test_one_hot_changes_two_coordinates_a_category(tmp_path: Path) -> None:
    """Any two people differ in 0 or 2 of a category's coordinates, as a note states."""
    rows = made()
    parameters = EmployeeParameters(encoding="one_hot")
    paths = written(tmp_path, rows)
    facts = EMPLOYEE.facts(parameters, paths)
    curves = EMPLOYEE.clients(parameters, paths)["curve"]
    names = [feature["name"] for feature in facts["features"]]
    assert curves.shape == (len(rows), len(names)) == (40, 14)
    for name, texts in TEXTS.items():
        own = curves[:, [names.index(f"{name} = {text}") for text in texts]]
        cells = [row[NAMES.index(name)] for row in rows]
        np.testing.assert_array_equal(own, [[t == c for t in texts] for c in cells])
        changed = np.abs(own[:, None] - own).sum(axis=2)
        assert set(np.unique(changed)) == {0.0, 2.0}
    assert any("up to 2 coordinates of each categorical" in n for n in facts["notes"])


def test_codes_state_what_they_pretend(tmp_path: Path) -> None:
    """An order without meaning, and one coordinate a person and category."""
    facts = EMPLOYEE.facts(EmployeeParameters(), written(tmp_path, made()))
    assert any("changes 1 coordinate of each" in note for note in facts["notes"])
    assert (
        facts["features"][2]["unit"] == "code: 0 = Bangalore, 1 = New Delhi, 2 = Pune"
    )
    assert facts["features"][2]["upper"] == 2


@pytest.mark.parametrize("encoding", ["codes", "one_hot"])
def test_ids_are_the_same_whatever_the_settings(tmp_path: Path, encoding: str) -> None:
    """A repeated row goes, the ids of the others stay, in both encodings."""
    rows = made(300)
    rows[7] = rows[3]
    paths = written(tmp_path, rows)
    first: dict[str, int] = {}
    for line, row in enumerate(rows, start=2):
        first.setdefault(str(row), line)
    kept, every = (
        EMPLOYEE.clients(
            EmployeeParameters(encoding=encoding, duplicates=policy), paths
        )
        for policy in ("distinct", "keep")
    )
    assert kept["client_id"].tolist() == list(first.values())
    assert every["client_id"].tolist() == list(range(2, 302))


def test_an_altered_copy_is_refused_with_all_its_faults() -> None:
    """Other spellings, numbers for texts and a tier too many stand together."""
    rows = made(30)
    rows[0][0], rows[1][2], rows[4][3], rows[6][4] = "PhD", "1", "4", "2.5"
    for row in rows[10:22]:
        row[1] = "last"
    with pytest.raises(UserError) as error:
        EMPLOYEE.check(text(rows), source("employee", 30))
    for part in (
        "Education, not one of Bachelors, Masters, PHD: 1 (line 2 'PhD')",
        "City, not one of Bangalore, New Delhi, Pune: 1 (line 3 '1')",
        "PaymentTier, impossible (outside 1 to 3): 1 (line 6 '4')",
        "Age, impossible (outside 10 to 125): 1 (line 8 '2.5')",
        "Age, not a whole number: 1 (line 8 '2.5')",
        "JoiningYear, not a number: 12 (line 12 'last', line 13",
        "line 21 'last', and 2 more)",
    ):
        assert part in str(error.value)


def test_rows_and_classes_must_be_those_published() -> None:
    """One label changed is a difference in two counts."""
    rows = made(20)
    counts = {label: [row[-1] for row in rows].count(label) for label in "01"}
    known = source("employee", 20, **counts)
    EMPLOYEE.check(text(rows), known)
    rows[0][-1] = "10"[int(rows[0][-1])]
    with pytest.raises(
        UserError, match=r"wrong counts: 0 \d+ instead.*, 1 \d+ instead"
    ):
        EMPLOYEE.check(text(rows), known)


def test_public_bounds_name_their_source() -> None:
    """Eight features, each with a reason, within what is possible at all."""
    assert len(EMPLOYEE.schema.features) == 8
    for feature in EMPLOYEE.schema.features:
        assert len(feature.why) > 20
        lowest, highest = EMPLOYEE.schema.possible.get(
            feature.name, (feature.lower, feature.upper)
        )
        assert lowest <= feature.lower < feature.upper <= highest


@needs_mirror
@pytest.mark.parametrize(
    ("duplicates", "n", "leaves"), [("distinct", 2764, 1088), ("keep", 4653, 1600)]
)
@pytest.mark.parametrize("encoding", ["codes", "one_hot"])
def test_the_real_file_has_the_published_counts(
    encoding: str, duplicates: str, n: int, leaves: int
) -> None:
    """4653 rows are 2764 distinct ones; nothing is missing; codes as published."""
    parameters = EmployeeParameters(encoding=encoding, duplicates=duplicates)
    paths = real("employee")
    facts = EMPLOYEE.facts(parameters, paths)
    curves = EMPLOYEE.clients(parameters, paths)["curve"]
    assert facts["rows"] == len(curves) == n == EMPLOYEE.size(parameters)
    assert facts["counts"] == {"stays": n - leaves, "leaves": leaves}
    assert facts["duplicates"] == {"policy": duplicates, "rows": 4653, "distinct": 2764}
    assert not any(facts["missing"]["counts"].values())
    EMPLOYEE.check(paths["employee"].read_bytes(), raw_files.find("employee"))


@needs_mirror
def test_equal_features_with_both_labels_are_as_many_as_stated() -> None:
    """2525 distinct vectors, 239 of them with both labels, as the module says."""
    found = EMPLOYEE.clients(EmployeeParameters(), real("employee"))
    _, counts = np.unique(found["curve"], axis=0, return_counts=True)
    assert (len(counts), (counts == 2).sum(), counts.max()) == (2525, 239, 2)
