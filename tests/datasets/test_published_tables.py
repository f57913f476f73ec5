"""Published tables: codes, gaps, ids and facts of each, and the copies refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.data import raw_files
from curvote.data.public.published_tables import CHURN, DIABETES, EMPLOYEE, STROKE
from curvote.data.raw_files import read
from tests.real_files import needs_mirror, real
from tests.tables import source

TABLES: dict[str, Any] = {
    "churn": CHURN,
    "stroke": STROKE,
    "employee": EMPLOYEE,
    "diabetes": DIABETES,
}
# The columns before the features, and one invented row of each table.
BEFORE = {
    "churn": ("RowNumber", "CustomerId", "Surname"),
    "stroke": ("id",),
    "employee": (),
    "diabetes": ("Id",),
}
INVENTED = {
    "churn": "1,990001,Doe,640,Spain,Male,37,4,0,2,1,0,51234.5,0",
    "stroke": "7,Male,54,0,1,Yes,Private,Rural,101.5,27.3,smokes,0",
    "employee": "PHD,2015,Pune,2,31,Female,No,4,0",
    "diabetes": "1,0,120,70,20,90,31.5,0.4,44,0",
}


def row(name: str, **changed: str) -> str:
    """Return one invented row as the file spells it."""
    table = TABLES[name].schema
    columns = [*BEFORE[name], *table.names, table.label]
    cells = dict(zip(columns, INVENTED[name].split(","), strict=True))
    return ",".join((cells | changed).values())


def text(name: str, *lines: str) -> str:
    """Return a file of ``lines`` under the published header, no final newline."""
    table = TABLES[name].schema
    return "\n".join([",".join([*BEFORE[name], *table.names, table.label]), *lines])


def write(folder: Path, name: str, *lines: str) -> dict[str, Path]:
    """Write a file of ``lines``; return its path by source name."""
    (folder / "table.csv").write_text(text(name, *lines))
    return {name: folder / "table.csv"}


def clients(name: str, paths: dict[str, Path], **said: Any) -> dict[str, Any]:
    """Return the clients of the file."""
    return TABLES[name].clients(TABLES[name].Parameters(**said), paths)


def facts(name: str, paths: dict[str, Path], **said: Any) -> dict[str, Any]:
    """Return the facts of the file, which survive JSON."""
    found = TABLES[name].facts(TABLES[name].Parameters(**said), paths)
    assert json.loads(json.dumps(found)) == found
    return found


OTHER = {"gender": "Other", "work_type": "children", "smoking_status": "Unknown"}


@pytest.mark.parametrize(
    ("name", "changed", "curve"),
    [
        ("churn", {}, [640, 2, 1, 37, 4, 0, 2, 1, 0, 51234.5]),
        ("churn", {"Geography": "Germany"}, [640, 1, 1, 37, 4, 0, 2, 1, 0, 51234.5]),
        ("stroke", {}, [1, 54, 0, 1, 1, 2, 0, 101.5, 27.3, 3]),
        ("stroke", OTHER | {"age": ".32"}, [2, 0.32, 0, 1, 1, 4, 0, 101.5, 27.3, 0]),
        ("employee", {}, [2, 2015, 2, 2, 31, 0, 0, 4]),
        (
            "employee",
            {"City": "Bangalore", "Gender": "Male"},
            [2, 2015, 0, 2, 31, 1, 0, 4],
        ),
        ("diabetes", {"Age": "45"}, [0, 120, 70, 20, 90, 31.5, 0.4, 45]),
    ],
)
@pytest.mark.parametrize("label", ["0", "1"])
def test_texts_become_alphabetical_codes(tmp_path, name, changed, curve, label):
    """Capitals come first; what names a row is no feature, a label is its place."""
    given = row(name, **changed, **{TABLES[name].schema.label: label})
    found = clients(name, write(tmp_path, name, given))
    assert found["curve"].tolist() == [curve]
    assert found["label"].tolist() == [int(label)]
    assert found["group"].tolist() == [0]


# Rows that repeat but for what names them, and a third one; ids as by the file.
REPEATS: dict[str, tuple[list[dict[str, str]], list[int]]] = {
    "churn": (
        [
            {},
            {"RowNumber": "2", "CustomerId": "990002", "Surname": '"Roe, jr"'},
            {"RowNumber": "3", "Age": "71"},
        ],
        [1, 2, 3],
    ),
    "stroke": ([{}, {"id": "8"}, {"id": "9", "age": "55"}], [7, 8, 9]),
    "employee": ([{}, {}, {"Age": "50"}], [2, 3, 4]),
    "diabetes": ([{}, {"Id": "2"}, {"Age": "50"}], [2, 3, 4]),
}


@pytest.mark.parametrize("name", REPEATS)
def test_names_and_numbers_tell_no_rows_apart(tmp_path: Path, name: str) -> None:
    """Equal rows repeat; who stays keeps an id; facts state the policy and both counts.

    Facts are plain JSON, with the source of all bounds and no cell that names a row.
    """
    rows, ids = REPEATS[name]
    paths = write(tmp_path, name, *(row(name, **changed) for changed in rows))
    options = [{"encoding": kind} for kind in ("codes", "one_hot")]
    for said in options if name == "employee" else [{}]:
        found = clients(name, paths, **said)
        assert found["client_id"].tolist() == [ids[0], ids[2]]
        kept = clients(name, paths, duplicates="keep", **said)
        assert kept["client_id"].tolist() == ids
        told = facts(name, paths, **said)
        assert told["duplicates"] == {"policy": "distinct", "rows": 3, "distinct": 2}
        assert [*told["counts"].values()] == [2, 0]
        assert all(feature["why"] for feature in told["features"])
        assert len(told["features"]) == found["curve"].shape[1]
    assert "990001" not in str(told)


@pytest.mark.parametrize("name", TABLES)
def test_public_bounds_name_their_source(name: str) -> None:
    """Each feature has a reason, and bounds within what is possible at all."""
    schema = TABLES[name].schema
    for feature in schema.features:
        assert len(feature.why) > 20
        ends = schema.possible.get(feature.name, (feature.lower, feature.upper))
        assert ends[0] <= feature.lower < feature.upper <= ends[1]


@pytest.mark.parametrize(
    ("name", "changed", "missing", "found"),
    [
        # A balance of 0 is real, and so is no pregnancy.
        *(("churn", {}, policy, {"Balance": 0.0}) for policy in ("centre", "drop")),
        ("churn", {}, "keep", {"Balance": 0.0}),
        ("stroke", {"bmi": "N/A"}, "centre", {"bmi": 25.0}),
        ("stroke", {"bmi": ""}, "centre", {"bmi": 25.0}),
        ("stroke", {"bmi": "N/A"}, "drop", None),
        ("stroke", {"bmi": "27.3"}, "drop", {"bmi": 27.3}),
        ("diabetes", {"Glucose": "0", "BMI": "0"}, "centre", {"Glucose": 140.0}),
        ("diabetes", {"Glucose": "0"}, "keep", {"Glucose": 0.0, "Pregnancies": 0.0}),
        ("diabetes", {"Insulin": "0"}, "drop", None),
        ("diabetes", {"Insulin": "0"}, "centre", {"Insulin": 91.0, "Pregnancies": 0.0}),
    ],
)
def test_what_means_missing_is_filled_left_out_or_kept(
    tmp_path: Path,
    name: str,
    changed: dict[str, str],
    missing: str,
    found: dict[str, float] | None,
) -> None:
    """By the public centre, with its row, or as it stands; and it is counted."""
    first = row(name, **{"churn": {"Age": "50", "RowNumber": "1"}}.get(name, {}))
    paths = write(tmp_path, name, first, row(name, **SECOND[name] | changed))
    curves = clients(name, paths, missing=missing)["curve"]
    assert len(curves) == 1 + (found is not None)
    names = TABLES[name].schema.names
    for feature, value in (found or {}).items():
        assert curves[1, names.index(feature)] == value
    gaps = {feature for feature, cell in changed.items() if cell in {"N/A", "", "0"}}
    told = facts(name, paths, missing=missing)["missing"]
    assert {feature for feature, n in told["counts"].items() if n} == gaps
    assert told["policy"] == missing


SECOND = {
    "churn": {"RowNumber": "2"},
    "stroke": {"id": "8", "age": "60"},
    "diabetes": {"Age": "60"},
}


def test_a_missing_value_cannot_be_kept(tmp_path: Path) -> None:
    """There is no number to keep; the message says how many cells there are."""
    paths = write(tmp_path, "stroke", row("stroke", bmi="N/A"))
    with pytest.raises(UserError, match="bmi 1"):
        clients("stroke", paths, missing="keep")


def test_zero_means_missing_in_five_features_of_diabetes() -> None:
    """It lies outside the bounds of those, and is a number in the others."""
    zeros = {f.name for f in DIABETES.schema.features if f.missing == (0.0,)}
    real_zeros = {"Pregnancies", "DiabetesPedigreeFunction", "Age"}
    assert zeros == {*DIABETES.schema.names} - real_zeros


@pytest.mark.parametrize(
    ("name", "said", "note"),
    [
        ("churn", {}, "balance of 0 is real"),
        ("stroke", {}, "1 of 4 persons had a stroke: always saying"),
        ("stroke", {}, "is right for 75.0%"),
        ("employee", {}, "changes 1 coordinate of each"),
        (
            "employee",
            {"encoding": "one_hot"},
            "up to 2 coordinates of each",
        ),
        ("diabetes", {}, "All 768 rows of the Pima"),
    ],
)
def test_a_report_states_what_is_special(tmp_path, name, said, note):
    """Base rates, real zeros, codes that pretend an order."""
    age, label = "age" if name == "stroke" else "Age", TABLES[name].schema.label
    rows = [
        row(
            name,
            **{key: str(i) for key in BEFORE[name][:1]},
            **{age: str(20 + i), label: str(int(i == 1))},
        )
        for i in range(1, 5)
    ]
    told = facts(name, write(tmp_path, name, *rows), **said)
    assert [*told["counts"].values()] == [3, 1]
    assert note in " ".join(told["notes"])
    if not said:
        units = {feature["name"]: feature["unit"] for feature in told["features"]}
        city = "code: 0 = Bangalore, 1 = New Delhi, 2 = Pune"
        assert units.get("City", city) == city
        assert [f["name"] for f in told["features"]] == TABLES[name].schema.names


def test_one_hot_changes_two_coordinates_a_category(tmp_path: Path) -> None:
    """Any two people differ in 0 or 2 of a category's coordinates, as a note states."""
    rng = np.random.default_rng(1)
    texts = {f.name: f.categories for f in EMPLOYEE.schema.features if f.categories}
    people = [
        {name: str(rng.choice(known)) for name, known in texts.items()}
        for _ in range(40)
    ]
    lines = [row("employee", **person) for person in people]
    paths, said = write(tmp_path, "employee", *lines), {"encoding": "one_hot"}
    curves = clients("employee", paths, duplicates="keep", **said)["curve"]
    names = [
        feature["name"] for feature in facts("employee", paths, **said)["features"]
    ]
    assert curves.shape == (40, len(names)) == (40, 14)
    for name, known in texts.items():
        own = curves[:, [names.index(f"{name} = {category}") for category in known]]
        expected = [[c == person[name] for c in known] for person in people]
        np.testing.assert_array_equal(own, expected)
        assert {*np.abs(own[:, None] - own).sum(axis=2).ravel()} == {0.0, 2.0}


def test_each_variant_of_diabetes_has_its_file_and_size() -> None:
    """Sizes follow the published counts; what drops is not known before loading."""
    for variant, file, sizes in (
        ("healthcare", "diabetes", {"keep": 2768, "distinct": 778}),
        ("pima", "pima", {"keep": 768, "distinct": 768}),
    ):
        for duplicates, n in sizes.items():
            said = {"variant": variant, "duplicates": duplicates}
            assert DIABETES.files(DIABETES.Parameters(**said)) == (file,)
            assert DIABETES.size(DIABETES.Parameters(**said)) == n
            assert DIABETES.size(DIABETES.Parameters(**said, missing="drop")) is None


# What a sound file of three rows is followed by or changed into, and what is said.
SOUND = {
    "churn": [row("churn", RowNumber=str(i), Exited="001"[i - 1]) for i in (1, 2, 3)],
    "stroke": [row("stroke", id=str(i), stroke="001"[i - 1]) for i in (1, 2, 3)],
    "employee": [row("employee", LeaveOrNot=label) for label in "001"],
    "diabetes": [row("diabetes", Outcome=label) for label in "001"],
}
# A changed second line (line 3 of the file), by column.
CELLS: list[tuple[str, dict[str, str], str]] = [
    ("churn", {"Balance": ""}, "Balance, not a number: 1 (line 3 '')"),
    ("churn", {"Balance": "none"}, "Balance, not a number: 1 (line 3 'none')"),
    ("churn", {"Balance": "-5"}, "Balance, impossible (not in 0 to 1e+09): 1"),
    ("churn", {"NumOfProducts": "1.5"}, "NumOfProducts, not a whole number: 1 (line 3"),
    (
        "churn",
        {"Geography": "Italy"},
        "Geography, not one of France, Germany, Spain",
    ),
    ("churn", {"Exited": "yes"}, "Exited, not one of 0, 1: 1 (line 3 'yes')"),
    ("churn", {"Exited": "1"}, "wrong counts: 0 1 instead of 2, 1 2 instead of 1"),
    ("churn", {"RowNumber": "3"}, "it is '3' instead of 2 on line 3. A row was added,"),
    ("stroke", {"bmi": "2000.2"}, "bmi, impossible (not in 5 to 260): 1 (line 3"),
    ("stroke", {"bmi": "high"}, "bmi, not a number: 1 (line 3 'high')"),
    ("stroke", {"age": "-1"}, "age, impossible (not in 0 to 125): 1 (line 3 '-1')"),
    ("stroke", {"gender": "male"}, "gender, not one of Female, Male, Other"),
    ("stroke", {"smoking_status": ""}, "only bmi has gaps; here smoking_status 1"),
    ("stroke", {"avg_glucose_level": "N/A", "age": ""}, "age 1, avg_glucose_level 1"),
    ("stroke", {"hypertension": "0.5"}, "hypertension, not a whole number"),
    ("stroke", {"stroke": "2"}, "stroke, not one of 0, 1: 1 (line 3 '2')"),
    ("stroke", {"stroke": "1"}, "wrong counts: 0 1 instead of 2"),
    ("stroke", {"id": "1"}, "column id: 1 values are repeated or no whole number"),
    ("stroke", {"id": "x"}, "the first on line 3: 'x'"),
    ("employee", {"Education": "PhD"}, "Education, not one of Bachelors, Masters, PHD"),
    ("employee", {"City": "1"}, "City, not one of Bangalore, New Delhi, Pune: 1"),
    ("employee", {"PaymentTier": "4"}, "PaymentTier, impossible (not in 1 to 3): 1"),
    ("employee", {"Age": "2.5"}, "Age, impossible (not in 10 to 125): 1"),
    ("employee", {"Age": "2.5"}, "Age, not a whole number: 1 (line 3 '2.5')"),
    (
        "employee",
        {"JoiningYear": "last"},
        "JoiningYear, not a number: 1 (line 3 'l",
    ),
    (
        "employee",
        {"LeaveOrNot": "1"},
        "wrong counts: 0 1 instead of 2, 1 2 instead of 1",
    ),
    ("diabetes", {"Glucose": "high"}, "Glucose, not a number: 1 (line 3 'high')"),
    ("diabetes", {"Pregnancies": "1.5"}, "Pregnancies, not a whole number: 1 (line 3"),
    ("diabetes", {"Age": "-1"}, "Age, impossible (not in 0 to 125): 1"),
    ("diabetes", {"Outcome": "2"}, "Outcome, not one of 0, 1: 1 (line 3 '2')"),
]
MERGED = "lines carry marks of a merge or a patch"
FIRST, NEXT, THIRD = SOUND["churn"]
# Other lines, and words of a sound file that are replaced.
LINES: list[tuple[str, list[str], str]] = [
    ("churn", [FIRST, f"{NEXT}+++", THIRD], f"1 {MERGED} (<<<<<<<, =======, >>>>>>>,"),
    (
        "churn",
        ["<<<<<<< HEAD", FIRST, "=======", NEXT, ">>>>>>> main", THIRD],
        "+++): 2, 4, 6. This copy was damaged by version control",
    ),
    ("churn", ["======="] * 12, f"12 {MERGED}"),
    ("churn", [FIRST, NEXT, THIRD, THIRD], "it is '3' instead of 4 on line 5"),
    ("churn", [FIRST, NEXT, THIRD, row("churn", RowNumber="4")], "4 rows instead of 3"),
    ("stroke", [*SOUND["stroke"], row("stroke", id="9")], "4 rows instead of 3"),
    ("stroke", [*SOUND["stroke"][:2], row("stroke")[:30]], "rows without 12 fields"),
    ("diabetes", [*SOUND["diabetes"], row("diabetes")], "4 rows instead of 3"),
]
REPLACED: list[tuple[str, str, str, str]] = [
    ("churn", "Surname", "Name", "columns that are missing: 1 (Surname)"),
    ("churn", ",", ";", "one field"),
    ("stroke", "bmi", "BMI", "columns that are missing: 1"),
    ("diabetes", "Pressure", " Pressure", "not expected: 1 (Blood Pressure)"),
]
NUMBERED = {"churn": {"RowNumber": "2"}, "stroke": {"id": "2"}}
CHANGED = [
    (name, [first, row(name, **NUMBERED.get(name, {}) | cells), last], words)
    for name, cells, words in CELLS
    for first, _, last in [SOUND[name]]
]
ALTERED = [(name, text(name, *lines), words) for name, lines, words in LINES + CHANGED]
ALTERED += [(n, text(n, *SOUND[n]).replace(a, b), words) for n, a, b, words in REPLACED]


@pytest.mark.parametrize(("name", "damaged", "message"), ALTERED)
def test_an_altered_copy_is_refused(tmp_path, name, damaged, message):
    """The message says what is wrong, in which column and on which line.

    What checking refuses by its cells, loading refuses, too.
    """
    published = source(name, 3, **{"0": 2, "1": 1})
    for end in ("\n", "\r\n"):
        sound = text(name, *SOUND[name]).replace("\n", end)
        TABLES[name].check(sound.encode(), published)
    with pytest.raises(UserError) as error:
        TABLES[name].check(damaged.encode(), published)
    assert message in str(error.value)
    if "instead of" not in message or "line" in message:
        (tmp_path / "table.csv").write_text(damaged)
        with pytest.raises(UserError):
            clients(name, {name: tmp_path / "table.csv"})


def test_only_one_table_of_diabetes_has_an_id() -> None:
    """The other one's file is refused with it."""
    data = text("diabetes", *SOUND["diabetes"]).encode()
    with pytest.raises(UserError, match=r"not expected: 1 \(Id\)"):
        DIABETES.check(data, source("pima", 3, **{"0": 2, "1": 1}))


PIMA, KEEP = {"variant": "pima"}, {"duplicates": "keep"}
PIMA_ZEROS = [0, 5, 35, 227, 374, 11, 0, 0]
# What is said, the clients of each class, distinct rows, and what is missing.
REAL: list[tuple[str, dict[str, Any], list[int], int, list[int] | None]] = [
    ("churn", {}, [7963, 2037], 10_000, [0] * 10),
    ("churn", {"missing": "drop"}, [7963, 2037], 10_000, None),
    ("stroke", {}, [4861, 249], 5110, [0] * 8 + [201, 0]),
    ("stroke", {"missing": "drop"}, [4700, 209], 5110, None),
    ("employee", {}, [1676, 1088], 2764, [0] * 8),
    ("employee", KEEP, [3053, 1600], 2764, [0] * 8),
    ("employee", {"encoding": "one_hot"}, [1676, 1088], 2764, [0] * 14),
    ("diabetes", {}, [506, 272], 778, None),
    ("diabetes", KEEP, [1816, 952], 778, [0, 18, 125, 800, 1330, 39, 0, 0]),
    ("diabetes", PIMA, [500, 268], 768, PIMA_ZEROS),
    ("diabetes", PIMA | KEEP, [500, 268], 768, PIMA_ZEROS),
]


@needs_mirror
@pytest.mark.parametrize(("name", "said", "counts", "distinct", "missing"), REAL)
def test_the_real_files_are_as_published(name, said, counts, distinct, missing):
    """Rows, classes, repeats and gaps; the number of clients was known before."""
    parameters = TABLES[name].Parameters(**said)
    (file,) = TABLES[name].files(parameters)
    paths = real(file)
    TABLES[name].check(read(paths[file]), raw_files.find(file))
    found, told = clients(name, paths, **said), facts(name, paths, **said)
    assert np.bincount(found["label"]).tolist() == [*told["counts"].values()] == counts
    size = TABLES[name].size(parameters)
    assert size == sum(counts) == told["rows"] == len({*found["client_id"].tolist()})
    assert told["duplicates"]["distinct"] == distinct
    if missing is not None:
        assert [*told["missing"]["counts"].values()] == missing


@needs_mirror
def test_what_the_modules_say_of_the_real_files_holds() -> None:
    """Real zeros, categories, vectors with both labels, and Pima in its copy."""
    churn = clients("churn", real("churn"))
    assert (churn["curve"][:, 5] == 0).sum() == 3617
    assert churn["client_id"].tolist() == [*range(1, 10_001)]
    stroke = clients("stroke", real("stroke"))["curve"]
    assert ((stroke[:, 9] == 0).sum(), (stroke[:, 0] == 2).sum()) == (1544, 1)
    assert "95.1%" in " ".join(facts("stroke", real("stroke"))["notes"])
    people = clients("employee", real("employee"))["curve"]
    _, counts = np.unique(people, axis=0, return_counts=True)
    assert (len(counts), (counts == 2).sum(), counts.max()) == (2525, 239, 2)
    large, small = (
        clients("diabetes", real(file), variant=variant, missing="keep")
        for file, variant in (("diabetes", "healthcare"), ("pima", "pima"))
    )
    rows = [
        {*map(tuple, np.column_stack([x["curve"], x["label"]]).tolist())}
        for x in (large, small)
    ]
    assert rows[1] < rows[0]
    assert len(rows[1]) == 768
