"""Heart disease: which patients become clients, by which rule, from which spelling."""

import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.data import lookup, raw_files
from curvote.data.public import heart
from curvote.data.raw_files import read
from tests.real_files import MIRROR

COLUMNS = [feature.name for feature in heart.FEATURES] + ["num"]
INVENTED = "51,1,3,128,241,0,1,139,0,1.4,2,0,3,0"
PATIENT = dict(zip(COLUMNS, INVENTED.split(","), strict=True))


def line(**changed: str) -> str:
    """Return one invented patient as the files spell it."""
    return ",".join((PATIENT | changed).values())


def write(folder: Path, **hospitals: list[str]) -> dict[str, Path]:
    """Write a file a hospital; return the paths by source name."""
    paths = {f"heart-{name}": folder / f"{name}.data" for name in hospitals}
    for path, lines in zip(paths.values(), hospitals.values(), strict=True):
        path.write_text("\n".join(lines) + "\n")
    return paths


def load(paths: Mapping[str, Path], **said: Any) -> dict[str, Any]:
    """Return the clients of the hospitals in ``paths``."""
    names = [name.removeprefix("heart-") for name in paths]
    chosen = heart.Parameters.model_validate({"hospitals": names} | said)
    return heart.clients(chosen, paths)


def test_seven_features_in_the_order_of_the_paper(tmp_path: Path) -> None:
    """Columns are picked by name, num > 0 is disease, the group is the hospital."""
    lines = [line(num=num, age=str(40 + i)) for i, num in enumerate("01234")]
    paths = write(tmp_path, cleveland=lines, va=lines[:2])
    clients = load(paths)
    assert clients["curve"][0].tolist() == [40, 1, 3, 0, 139, 1.4, 128]
    assert clients["label"].tolist() == [0, 1, 1, 1, 1, 0, 1]
    assert clients["group"].tolist() == [0] * 5 + [1] * 2
    assert clients["client_id"].tolist() == [1, 2, 3, 4, 5, 3001, 3002]


def test_an_id_is_the_same_whatever_is_asked(tmp_path: Path) -> None:
    """Rule, policies and the other hospitals change who is there, never an id."""
    lines = [line(), line(), line(restecg="?"), line(oldpeak="?"), line(age="60")]
    paths = write(tmp_path, hungarian=lines, va=lines)
    whole = load(paths, rule="all", duplicates="keep")
    ages = dict(zip(whole["client_id"].tolist(), whole["curve"][:, 0], strict=True))
    alone = load({"heart-va": paths["heart-va"]}, missing="drop")
    assert alone["client_id"].tolist() == [3001, 3005]
    assert [ages[i] for i in alone["client_id"].tolist()] == [51, 60]


@pytest.mark.parametrize("mark", ["?", "-9", "-9.0", "", "NaN"])
def test_every_mark_means_missing(tmp_path: Path, mark: str) -> None:
    """A gap is filled with the public centre, however a copy of the file spells it."""
    paths = write(tmp_path, va=[line(oldpeak=mark, ca=mark), line(oldpeak="2")])
    assert load(paths)["client_id"].tolist() == [3002]
    filled = load(paths, rule="all")
    assert filled["curve"][:, 5].tolist() == [1.0, 2.0]
    stated = heart.Parameters(hospitals=("va",), rule="all")
    assert heart.facts(stated, paths)["missing"]["counts"]["oldpeak"] == 1


def test_numbers_are_spelled_in_many_ways(tmp_path: Path) -> None:
    """63.0, 63, .7 and -2.6 are numbers; equal numbers make equal rows."""
    lines = [line(age="63.0", oldpeak=".7"), line(age="63", oldpeak="0.7")]
    paths = write(tmp_path, switzerland=[*lines, line(oldpeak="-2.6")])
    curves = load(paths)["curve"]
    assert curves[:, [0, 5]].tolist() == [[63, 0.7], [51, -2.6]]


@pytest.mark.parametrize(
    ("rule", "ids"),
    [
        ("complete_with_restecg", [3001, 3004]),
        ("complete", [3001, 3002, 3004]),
        ("all", [3001, 3002, 3003, 3004]),
    ],
)
def test_the_rule_says_which_gaps_a_row_may_have(tmp_path, rule, ids):
    """Only restecg and the seven count; chol 0 and trestbps 0 are no gap to a rule."""
    lines = [line(ca="?"), line(restecg="?"), line(exang="?")]
    paths = write(tmp_path, va=[*lines, line(trestbps="0", chol="0")])
    assert load(paths, rule=rule)["client_id"].tolist() == ids


@pytest.mark.parametrize(
    ("missing", "pressures"),
    [("centre", [128, 130]), ("drop", [128]), ("keep", [128, 0])],
)
def test_a_blood_pressure_of_0_is_missing(tmp_path, missing, pressures):
    """The rule lets it pass, as the published counts do; then ``missing`` decides."""
    paths = write(tmp_path, va=[line(), line(trestbps="0")])
    assert load(paths, missing=missing)["curve"][:, 6].tolist() == pressures


def test_a_row_repeats_only_if_all_columns_do(tmp_path: Path) -> None:
    """Equal features with another chol, or at another hospital: another patient."""
    lines = [line(chol="?"), line(chol="?"), line(chol="199")]
    paths = write(tmp_path, cleveland=lines[1:], hungarian=lines)
    distinct, keep = load(paths), load(paths, duplicates="keep")
    assert distinct["client_id"].tolist() == [1, 2, 1001, 1003]
    assert keep["client_id"].tolist() == [1, 2, 1001, 1002, 1003]
    stated = heart.facts(heart.Parameters(hospitals=("hungarian",)), paths)
    both = {"policy": "distinct", "rows": 3, "distinct": 2}
    assert stated["duplicates"] == both
    assert any("distinct among them: hungarian 2." in note for note in stated["notes"])


def test_facts_and_clients_tell_the_same(tmp_path: Path) -> None:
    """Facts are plain JSON, one feature a column, with the public bounds."""
    paths = write(tmp_path, cleveland=[line(), line(num="3")])
    stated = heart.Parameters(hospitals=("cleveland",))
    facts = json.loads(json.dumps(heart.facts(stated, paths)))
    assert facts["counts"] == {"no disease": 1, "disease": 1}
    assert [feature["name"] for feature in facts["features"]] == list(heart.SEVEN)
    assert facts["grid"] == list(range(7))
    bounds = {f["name"]: (f["lower"], f["upper"]) for f in facts["features"]}
    assert bounds["age"] == (20, 90)
    assert bounds["thalach"] == (60, 220)
    assert bounds["oldpeak"] == (-3, 7)
    assert bounds["trestbps"] == (80, 220)
    assert all(feature["why"] for feature in facts["features"])


@pytest.mark.parametrize(
    ("rule", "duplicates", "missing", "sizes"),
    [
        ("complete_with_restecg", "keep", "centre", [303, 292, 116, 141]),
        ("complete_with_restecg", "distinct", "centre", [303, 291, 116, 140]),
        ("all", "keep", "centre", [303, 294, 123, 200]),
        ("all", "keep", "drop", [303, 293, 117, 140]),
    ],
)
def test_every_hospital_is_a_server(rule, duplicates, missing, sizes):
    """Their sizes are published: known before any file is read."""
    said = {"rule": rule, "duplicates": duplicates, "missing": missing}
    source = {"name": "heart", **said, "hospitals": ["va", "switzerland", "cleveland"]}
    every = dict(zip(heart.HOSPITALS, sizes, strict=True))
    assert lookup.servers({"name": "heart"} | said) == every
    del every["hungarian"]
    assert [*(lookup.servers(source) or {}).items()] == [*every.items()]


@pytest.mark.parametrize(
    ("hospital", "bad", "message"),
    [
        ("hungarian", line(num="2"), "num, not one of 0, 1: 1 (line 2 '2')"),
        ("va", line(num="5"), "num, not one of 0, 1, 2, 3, 4: 1 (line 2 '5')"),
        ("va", line(sex="0.4"), "sex, not a whole number: 1 (line 2 '0.4')"),
        ("va", line(age="-3"), "age, impossible (not in 0 to 125): 1 (line 2 '-3'"),
        ("va", line(thalach="fast"), "thalach, not a number: 1 (line 2 'fast')"),
        ("va", ",".join(COLUMNS), "line 2 'age'"),
        ("va", line() + ",", "rows without 14 fields"),
        ("va", line(num="1"), "wrong counts: 0 1 instead of 2, 1 1 instead of 0"),
    ],
)
def test_an_altered_copy_is_refused(hospital: str, bad: str, message: str) -> None:
    """The message names the line, the column and what stands there."""
    source = replace(raw_files.find(f"heart-{hospital}"), rows=2, counts={"0": 2})
    heart.check(f"{line()}\n{line(age='70')}\n".encode(), source)
    with pytest.raises(UserError) as error:
        heart.check(f"{line()}\n{bad}\n".encode(), source)
    assert message in str(error.value)


def test_the_order_of_hospitals_does_not_matter() -> None:
    """Named in any order they are the same source, with one file each."""
    said = heart.Parameters.model_validate({"hospitals": ["va", "cleveland"]})
    assert said == heart.Parameters(hospitals=("cleveland", "va"))
    assert heart.files(said) == ("heart-cleveland", "heart-va")
    assert set(heart.files(heart.Parameters())) <= set(raw_files.catalogue())


@pytest.fixture
def real(tmp_path: Path) -> dict[str, Path]:
    """Return the checked published files; skip where they are not at hand."""
    if not MIRROR:
        pytest.skip("needs the real files: CURVOTE_DATA_MIRROR unset")
    names = heart.files(heart.Parameters())
    found = {name: raw_files.locate(tmp_path, name, download=False) for name in names}
    return {name: file.path for name, file in found.items() if file}


def test_the_published_counts(real: dict[str, Path]) -> None:
    """303, 292, 116 and 141 with restecg; one patient more in two files without it."""
    for name, path in real.items():
        heart.check(read(path), raw_files.find(name))
    kept = load(real, duplicates="keep")
    assert np.bincount(kept["group"]).tolist() == [303, 292, 116, 141]
    ill = np.bincount(kept["group"], weights=kept["label"])
    assert ill.tolist() == [139, 105, 108, 111]
    distinct = load(real)
    assert np.bincount(distinct["group"]).tolist() == [303, 291, 116, 140]
    more = load(real, duplicates="keep", rule="complete")
    assert np.bincount(more["group"]).tolist() == [303, 293, 117, 141]
    notes = " ".join(heart.facts(heart.Parameters(), real)["notes"])
    assert "cleveland 303 of 303, hungarian 292 of 294, switzerland 116 of 123" in notes


@pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.faults)])
def test_the_size_is_known_before_loading(real: dict[str, Path], stride: int) -> None:
    """Whatever hospitals, rule and policies: as many clients as ``size`` said."""
    rules, repeats = ["complete_with_restecg", "complete", "all"], ["distinct", "keep"]
    every = [*itertools.product(rules, repeats, ["centre", "drop"])]
    for rule, repeat, gap in every[::stride]:
        said: dict[str, Any] = {"rule": rule, "duplicates": repeat, "missing": gap}
        found = np.bincount(load(real, **said)["group"]).tolist()
        for hospital, n in zip(heart.HOSPITALS, found, strict=True):
            assert heart.size(heart.Parameters(hospitals=(hospital,), **said)) == n
        assert heart.size(heart.Parameters(**said)) == sum(found)
        whole = heart.facts(heart.Parameters(**said), real)
        assert [*whole["servers"].values()] == found
