"""Bank customers: codes, real zeros, and the damaged copies that circulate."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.data import raw_files
from curvote.data.public.published_tables import CHURN
from curvote.data.raw_files import read
from tests.real_files import needs_mirror

HEADER = ["RowNumber", "CustomerId", "Surname", *CHURN.schema.names, "Exited"]
INVENTED = "1,990001,Doe,640,Spain,Male,37,4,0,2,1,0,51234.5,0"
CUSTOMER = dict(zip(HEADER, INVENTED.split(","), strict=True))


def line(**changed: str) -> str:
    """Return one invented customer as the file spells it."""
    return ",".join((CUSTOMER | changed).values())


SECOND = line(RowNumber="2", Surname='"O\'Hara, jr"', Geography="Germany", Exited="1")
THIRD = line(RowNumber="3", Age="71", Balance="120000.25", Tenure="9")


def text(*lines: str) -> str:
    """Return a file of ``lines`` under the published header."""
    return "\n".join([",".join(HEADER), *lines, ""])


def write(folder: Path, *lines: str) -> dict[str, Path]:
    """Write a file of ``lines``; return its path by source name."""
    path = folder / "churn.csv"
    path.write_text(text(*lines))
    return {"churn": path}


def load(paths: dict[str, Path], **said: Any) -> dict[str, Any]:
    """Return the clients of the file."""
    return CHURN.clients(CHURN.Parameters(**said), paths)


@pytest.mark.parametrize("missing", ["centre", "drop", "keep"])
def test_a_balance_of_0_is_a_balance(tmp_path: Path, missing: str) -> None:
    """Whatever is done with missing values, it is none; text becomes codes."""
    clients = load(write(tmp_path, line(), SECOND, THIRD), missing=missing)
    assert clients["curve"].tolist() == [
        [640, 2, 1, 37, 4, 0, 2, 1, 0, 51234.5],
        [640, 1, 1, 37, 4, 0, 2, 1, 0, 51234.5],
        [640, 2, 1, 71, 9, 120000.25, 2, 1, 0, 51234.5],
    ]
    assert clients["label"].tolist() == [0, 1, 0]
    assert clients["client_id"].tolist() == [1, 2, 3]
    assert clients["group"].tolist() == [0, 1, 2]


def test_names_and_numbers_tell_no_rows_apart(tmp_path: Path) -> None:
    """RowNumber, CustomerId and Surname are no features: equal rows repeat."""
    twin = line(RowNumber="2", CustomerId="990002", Surname="Roe")
    paths = write(tmp_path, line(), twin, THIRD)
    assert load(paths)["client_id"].tolist() == [1, 3]
    assert load(paths, duplicates="keep")["client_id"].tolist() == [1, 2, 3]


def test_facts_and_clients_tell_the_same(tmp_path: Path) -> None:
    """Facts are plain JSON: ten features with the source of their bounds."""
    paths = write(tmp_path, line(), SECOND, THIRD)
    facts = json.loads(json.dumps(CHURN.facts(CHURN.Parameters(), paths)))
    assert facts["counts"] == {"stays": 2, "leaves": 1}
    assert [feature["name"] for feature in facts["features"]] == CHURN.schema.names
    assert all(feature["why"] for feature in facts["features"])
    assert set(facts["missing"]["counts"].values()) == {0}
    assert "990001" not in json.dumps(facts)
    assert any("balance of 0 is real" in note for note in facts["notes"])


MERGED = "lines carry marks of a merge or a patch"
DAMAGED: dict[str, tuple[str, str]] = {
    "a patch's plus signs": (
        text(line(), SECOND + "+++", THIRD),
        f"1 {MERGED} (<<<<<<<, =======, >>>>>>>, +++): 3.",
    ),
    "merge marks": (
        text("<<<<<<< HEAD", line(), "=======", SECOND, ">>>>>>> main", THIRD),
        "+++): 2, 4, 6. This copy was damaged by version control",
    ),
    "many merge marks": (text(*["======="] * 12), f"12 {MERGED}"),
    "an extra row": (
        text(line(), SECOND, THIRD, THIRD),
        "not count the 4 rows from 1 up: it is '3' instead of 4 on line 5",
    ),
    "an empty balance": (
        text(line(Balance=""), SECOND, THIRD),
        "Balance, not a number: 1 (line 2 '')",
    ),
    "an extra row, counted": (
        text(line(), SECOND, THIRD, line(RowNumber="4")),
        "4 rows instead of 3, 0 3 instead of 2",
    ),
    "a lost row": (
        text(line(), THIRD),
        "it is '3' instead of 2 on line 3. A row was added, lost or moved",
    ),
    "another label": (
        text(line(Exited="1"), SECOND, THIRD),
        "wrong counts: 0 1 instead of 2, 1 2 instead of 1",
    ),
    "no label": (
        text(line(Exited="yes"), SECOND, THIRD),
        "Exited, not one of 0, 1: 1 (line 2 'yes')",
    ),
    "no balance": (
        text(line(Balance="none"), SECOND, THIRD),
        "Balance, not a number: 1 (line 2 'none')",
    ),
    "a negative balance": (
        text(line(Balance="-5"), SECOND, THIRD),
        "Balance, impossible (outside 0 to 1e+09): 1 (line 2 '-5')",
    ),
    "half a product": (
        text(line(NumOfProducts="1.5"), SECOND, THIRD),
        "NumOfProducts, not a whole number: 1 (line 2 '1.5')",
    ),
    "another country": (
        text(line(Geography="Italy"), SECOND, THIRD),
        "Geography, not one of France, Germany, Spain: 1 (line 2 'Italy')",
    ),
    "another header": (
        text(line(), SECOND, THIRD).replace("Surname", "Name"),
        "columns that are missing: 1 (Surname)",
    ),
    "semicolons": (text(line(), SECOND, THIRD).replace(",", ";"), "one field"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_copy_is_refused(case: str) -> None:
    """The message says what is wrong with this copy, and on which line."""
    source = replace(raw_files.find("churn"), rows=3, counts={"0": 2, "1": 1})
    CHURN.check(text(line(), SECOND, THIRD).encode(), source)
    damaged, message = DAMAGED[case]
    with pytest.raises(UserError) as error:
        CHURN.check(damaged.encode(), source)
    assert message in str(error.value)


@pytest.mark.parametrize("case", ["merge marks", "an extra row"])
def test_damage_never_becomes_clients(tmp_path: Path, case: str) -> None:
    """Loading refuses what checking refuses."""
    path = tmp_path / "churn.csv"
    path.write_text(DAMAGED[case][0])
    with pytest.raises(UserError):
        load({"churn": path})


@needs_mirror
def test_the_real_file_is_as_published(tmp_path: Path) -> None:
    """10000 customers, 2037 leave, 3617 have a balance of 0; nothing repeats."""
    found = raw_files.locate(tmp_path, "churn", download=False)
    assert found
    CHURN.check(read(found.path), raw_files.find("churn"))
    paths = {"churn": found.path}
    clients = load(paths)
    assert np.bincount(clients["label"]).tolist() == [7963, 2037]
    assert clients["client_id"].tolist() == list(range(1, 10001))
    assert (clients["curve"][:, 5] == 0).sum() == 3617
    facts = CHURN.facts(CHURN.Parameters(), paths)
    assert facts["duplicates"]["distinct"] == 10000
    assert CHURN.size(CHURN.Parameters(missing="drop")) == len(clients["label"])
