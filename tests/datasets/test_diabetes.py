"""The diabetes tables: published counts, zeros that mean missing, policies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.data import raw_files
from curvote.data.public.published_tables import DIABETES, DiabetesParameters
from tests.real_files import needs_mirror, real
from tests.tables import source

HEADER = "Id,Pregnancies,Glucose,BloodPressure,SkinThickness,Insulin,BMI,"
HEADER += "DiabetesPedigreeFunction,Age,Outcome"
# Zeros in the order of the features; Pregnancies 0 is real.
ZEROS = {
    ("healthcare", "keep"): [0, 18, 125, 800, 1330, 39, 0, 0],
    ("pima", "keep"): [0, 5, 35, 227, 374, 11, 0, 0],
    ("pima", "distinct"): [0, 5, 35, 227, 374, 11, 0, 0],
}
COUNTS = {
    ("healthcare", "keep"): (2768, 952, 778),
    ("healthcare", "distinct"): (778, 272, 778),
    ("pima", "keep"): (768, 268, 768),
    ("pima", "distinct"): (768, 268, 768),
}


def made(n: int = 40, seed: int = 1) -> list[list[str]]:
    """Return rows of the published layout with invented values, some of them zero."""
    rng = np.random.default_rng(seed)
    rows = [[str(i + 1)] for i in range(n)]
    for feature in DIABETES.schema.features:
        values = rng.uniform(feature.lower, feature.upper, size=n)
        values = values.round(0 if feature.integral else 3)
        values[rng.random(n) < 0.2] = feature.missing[0] if feature.missing else 18
        for row, value in zip(rows, values, strict=True):
            row.append(f"{value:g}")
    return [[*row, str(rng.integers(2))] for row in rows]


def text(rows: list[list[str]], end: str = "\r\n") -> bytes:
    """Return the file of these rows."""
    return end.join([HEADER, *map(",".join, rows)]).encode()


def written(tmp_path: Path, rows: list[list[str]]) -> dict[str, Path]:
    """Write the file of these rows and return its place by name."""
    path = tmp_path / "Healthcare-Diabetes.csv"
    path.write_bytes(text(rows))
    return {"diabetes": path}


def test_each_variant_has_its_file_and_size() -> None:
    """Sizes follow the published counts; what drops is not known before loading."""
    assert DIABETES.files(DiabetesParameters()) == ("diabetes",)
    assert DIABETES.files(DiabetesParameters(variant="pima")) == ("pima",)
    for (variant, duplicates), (n, _, _) in COUNTS.items():
        chosen = {"variant": variant, "duplicates": duplicates}
        assert DIABETES.size(DiabetesParameters(**chosen)) == n
        assert DIABETES.size(DiabetesParameters(**chosen, missing="drop")) is None


def test_public_bounds_name_their_source() -> None:
    """Eight features, each with a reason; zero lies outside where it means missing."""
    assert len(DIABETES.schema.features) == 8
    for feature in DIABETES.schema.features:
        assert len(feature.why) > 20
        lowest, highest = DIABETES.schema.possible[feature.name]
        assert lowest <= feature.lower < feature.upper <= highest
        zero = feature.name not in {
            "Pregnancies",
            "DiabetesPedigreeFunction",
            "Age",
        }
        assert feature.missing == ((0.0,) if zero else ())


def test_zeros_become_the_public_centre(tmp_path: Path) -> None:
    """But for Pregnancies; the Id is no feature."""
    rows = made()
    for row in rows[::3]:
        row[1] = "0"
    found = DIABETES.clients(DiabetesParameters(), written(tmp_path, rows))
    values = np.array([row[1:-1] for row in rows], dtype=float)
    centres = [feature.middle for feature in DIABETES.schema.features]
    gaps = (values == 0) & [
        bool(feature.missing) for feature in DIABETES.schema.features
    ]
    np.testing.assert_array_equal(found["curve"], np.where(gaps, centres, values))
    assert gaps.any()
    assert found["label"].tolist() == [int(row[-1]) for row in rows]


def test_ids_are_the_same_whatever_the_settings(tmp_path: Path) -> None:
    """Rows that repeat others, or lack a value, take no other row's id with them."""
    rows = made(30)
    paths = written(tmp_path, [*rows, *rows[:10]])
    every = DIABETES.clients(
        DiabetesParameters(duplicates="keep", missing="keep"), paths
    )
    labels = dict(zip(every["client_id"], every["label"], strict=True))
    assert list(labels) == list(range(2, 42))
    for missing in ("centre", "drop", "keep"):
        found = DIABETES.clients(DiabetesParameters(missing=missing), paths)
        assert set(found["client_id"]) <= set(range(2, 32))
        assert found["label"].tolist() == [labels[i] for i in found["client_id"]]
    distinct = DIABETES.clients(DiabetesParameters(), paths)
    assert distinct["client_id"].tolist() == list(range(2, 32))


def test_an_altered_copy_is_refused_with_all_its_faults() -> None:
    """A renamed column, text, an impossible age and a wrong label stand together."""
    rows = made(12)
    rows[2][8], rows[3][2], rows[5][9] = "-1", "high", "2"
    rows[7][1] = "1.5"
    counts = {label: [row[-1] for row in rows].count(label) for label in "01"}
    known = source("diabetes", 12, **counts)
    data = text(rows).replace(b"BloodPressure", b"Blood Pressure")
    with pytest.raises(UserError) as error:
        DIABETES.check(data, known)
    for part in (
        "missing: 1 (BloodPressure)",
        "not expected: 1 (Blood Pressure)",
        "Glucose, not a number: 1 (line 5 'high')",
        "Pregnancies, not a whole number: 1 (line 9 '1.5')",
        "Age, impossible (outside 0 to 125): 1 (line 4 '-1')",
        "Outcome, not one of 0, 1: 1 (line 7 '2')",
    ):
        assert part in str(error.value)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_rows_and_classes_must_be_those_published(end: str) -> None:
    """Line ends do not matter, one row more does; only `diabetes` has an Id."""
    rows = made(12)
    counts = {label: [row[-1] for row in rows].count(label) for label in "01"}
    DIABETES.check(text(rows, end), source("diabetes", 12, **counts))
    with pytest.raises(UserError, match="13 rows instead of 12"):
        DIABETES.check(text([*rows, rows[0]], end), source("diabetes", 12, **counts))
    with pytest.raises(UserError, match=r"not expected: 1 \(Id\)"):
        DIABETES.check(text(rows, end), source("pima", 12, **counts))


@needs_mirror
@pytest.mark.parametrize(("variant", "duplicates"), COUNTS)
def test_the_real_files_have_the_published_counts(
    variant: str, duplicates: str
) -> None:
    """2768 rows are 778 distinct ones; classes and zeros as published."""
    parameters = DiabetesParameters(variant=variant, duplicates=duplicates)
    paths = real(*DIABETES.files(parameters))
    n, positive, distinct = COUNTS[variant, duplicates]
    facts = DIABETES.facts(parameters, paths)
    found = DIABETES.clients(parameters, paths)
    assert facts["rows"] == n == DIABETES.size(parameters)
    assert facts["counts"] == {"no diabetes": n - positive, "diabetes": positive}
    assert facts["duplicates"]["distinct"] == distinct
    assert found["curve"].shape == (n, 8)
    if zeros := ZEROS.get((variant, duplicates)):
        assert list(facts["missing"]["counts"].values()) == zeros
    (name,) = DIABETES.files(parameters)
    DIABETES.check(paths[name].read_bytes(), raw_files.find(name))


@needs_mirror
def test_every_row_of_pima_is_in_the_enlarged_copy() -> None:
    """As a note of its facts states; so their clients are not independent."""
    chosen = [
        DiabetesParameters(variant=name, missing="keep")
        for name in ("healthcare", "pima")
    ]
    large, small = (DIABETES.clients(p, real(*DIABETES.files(p))) for p in chosen)
    rows = [
        {
            (*row, label)
            for row, label in zip(c["curve"].tolist(), c["label"], strict=True)
        }
        for c in (large, small)
    ]
    assert rows[1] < rows[0]
    assert len(rows[1]) == 768
    facts = DIABETES.facts(chosen[0], real("diabetes"))
    assert "All 768 rows of the Pima" in str(facts)
