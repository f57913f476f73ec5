"""The owner's form: a task is held against it alone, whatever stands in the table."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from curvote.base import table_file
from curvote.base.classes import Classes
from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.client import table as forms
from curvote.client.table import Form, read_records
from curvote.ledger.account import (
    POPULATION,
    Account,
    AccountOptions,
    open_account,
    refuse_new_ids,
)
from curvote.ledger.book import Ledger
from curvote.messages.answer import validate_task
from curvote.systems.transfer.audit import tables as servers
from curvote.systems.transfer.method.task import Level
from tests import registry
from tests.hospitals import FORM, Hospital, steward, table

STATED = Form.model_validate(
    {
        "id": "patient",
        "label": "disease",
        "classes": ["no", "yes"],
        "columns": {"age": {"bounds": [20, 90]}, "chol": {"bounds": [100, 400]}},
    }
)
TABLES, TASKS = 20, 10_000


def outcome(task: Any, path: Path) -> str:
    """Return what becomes of a task: all of it that could be seen from outside."""
    features, classes = task
    try:
        STATED.refuse_misfit(features, classes)
    except UserError as error:
        return str(error)
    try:
        found = read_records(path, STATED, features, classes)
    except UserError:
        return "the table"
    return f"answered, {found.values.shape[1]} columns"


def tables(folder: Path) -> list[Path]:
    """Write tables that differ in all that a task could ask after; five are faulty."""
    rng = np.random.default_rng(3)
    paths = []
    for number in range(TABLES):
        own = table("cleveland", 12, seed=number)
        own["chol"] += rng.normal(0, 10.0 ** rng.integers(0, 5))
        own["age"] *= 10.0 ** rng.integers(-2, 3)
        own["disease"] = rng.choice(["no", "yes"][: rng.integers(1, 3)], len(own))
        if number >= TABLES - 5:
            own.loc[0, "disease"] = "maybe"
        paths.append(folder / f"{number}.csv")
        own.to_csv(paths[-1], index=False)
    return paths


def tasks() -> list[Any]:
    """Return tasks of any bounds, columns and classes."""
    rng = np.random.default_rng(4)
    words = ["no", "yes", "maybe", "ill"]
    found = []
    for _ in range(TASKS):
        names = rng.permutation(["age", "chol", "sex"])[: rng.integers(1, 4)]
        ends = np.sort(rng.normal(100, 10.0 ** rng.uniform(0, 3), (len(names), 2)))
        features = [(str(n), *map(float, e)) for n, e in zip(names, ends, strict=True)]
        classes = rng.permutation(words)[: rng.integers(2, 5)]
        found.append((features, Classes(map(str, classes))))
    return found


def test_what_becomes_of_a_task_depends_on_the_statement_alone(tmp_path, monkeypatch):
    """10,000 tasks against 20 tables: a refusal tells nothing of what stands there."""
    read = {path: table_file.read_cells(path) for path in tables(tmp_path)}
    monkeypatch.setattr("curvote.base.table_file.read_cells", lambda path: read[path])
    seen: set[str] = set()
    for task in tasks():
        sound, faulty = (
            {outcome(task, path) for path in some}
            for some in ([*read][: TABLES - 5 : 7], [*read][TABLES - 5 :: 3])
        )
        assert len(sound) == len(faulty) == 1
        assert faulty in (sound, {"the table"})
        seen |= {each.partition(",")[0] for each in sound}
    assert "answered" in seen
    assert len(seen) > 100


def test_a_table_is_complained_of_alike_whatever_is_asked(tmp_path: Path) -> None:
    """Also what is wrong in a column that a task leaves out."""
    path = tmp_path / "t.csv"
    path.write_text("patient,disease,age,chol\na,no,x,200\nb,perhaps,30,300\n")
    said = set()
    for features in ([("age", 20.0, 90.0)], [("chol", 100.0, 400.0)]):
        for classes in (("no", "yes"), ("yes", "no", "perhaps")):
            with pytest.raises(UserError) as error:
                read_records(path, STATED, features, Classes(classes))
            said.add(str(error.value))
    (words,) = said
    assert "perhaps is none of no/yes" in words


def test_codes_are_places_among_the_classes_of_the_task(tmp_path: Path) -> None:
    """However the task orders them, and if it knows more of them."""
    path = tmp_path / "t.csv"
    path.write_text("patient,disease,age,chol\na,no,30,200\nb,yes,99,300\n")
    found = read_records(
        path, STATED, [("age", 20.0, 90.0)], Classes(["x", "yes", "no"])
    )
    assert found.codes.tolist() == [2, 1]
    assert found.values.tolist() == [[30.0], [99.0]]
    assert found.notes[0] == "age: 1 of 2 values lie beyond 20 to 90 and are clipped"


def test_columns_are_added_and_nothing_else_changes_after_a_release(ledger):
    """Before the first release a form may be mended."""
    forms.store_form(ledger, STATED.model_copy(update={"label": "disese"}))
    forms.store_form(ledger, STATED)
    assert forms.current_form(ledger) == STATED
    open_account(ledger, AccountOptions())
    ledger.reserve("r", ["a"], Budget(1.0), population=POPULATION, facts={})
    more = STATED.model_dump() | {
        "columns": STATED.columns | {"sugar": forms.Column(bounds=(0, 9))}
    }
    forms.store_form(ledger, Form.model_validate(more))
    for change in (
        {"id": "mrn"},
        {"label": "other"},
        {"classes": ("no", "yes", "maybe")},
        {"columns": {}},
    ):
        with pytest.raises(UserError, match="nothing else changes"):
            forms.store_form(ledger, STATED.model_copy(update=change))
    assert forms.current_form(ledger) == Form.model_validate(more)


def test_a_draft_takes_names_alone_and_says_what_is_open(tmp_path: Path) -> None:
    """No bound and no class is taken from a value."""
    path = tmp_path / "t.csv"
    path.write_text("patient,disease,age\n7,sick,4711\n")
    text = forms.draft_form(path)
    assert "4711" not in text
    assert "sick" not in text
    (tmp_path / "form.yaml").write_text(text)
    with pytest.raises(UserError, match="still to be stated"):
        forms.read_table_form(tmp_path / "form.yaml")


def test_a_form_is_settled_by_the_commands(tmp_path: Path) -> None:
    """A draft is written once, a form settled, shown, and none is never asked over."""
    home = Hospital.at(tmp_path, "va")
    out = str(home.root / "draft.yaml")
    words = ["form", "--table", str(home.root / "patients.csv"), "--out", out]
    assert home.client(*words).exit_code == 0
    assert "File exists" in str(home.client(*words).exception)
    home.init("--cap", "3")
    shown = home.client("show", "--json", "--ledger", str(home.ledger))
    told = json.loads(shown.stdout)
    assert (told["cap"], told["spent"], told["server"]) == (3.0, 0.0, None)
    assert told["form"]["id"] == "patient"
    plain = home.client("show", "--ledger", str(home.ledger)).stdout
    assert "column  chol: 100 to 400 mg/dl" in plain


def test_without_a_form_a_table_is_never_opened(tmp_path: Path) -> None:
    """Unattended: nothing is there that a task could be held against."""
    server = steward(tmp_path / "steward")
    server.run()
    home = Hospital.at(tmp_path, "va")
    home.receive(server)
    home.client("init", "--ledger", str(home.ledger), "--cap-delta", "1e-3")
    said = home.refusal(table=home.root / "nowhere.csv")
    assert "does not say what your table holds" in said
    given = registry.server(tmp_path / "labels", registry.people(registry.N))
    given.run()
    keeper = registry.Keeper.at(tmp_path / "keeper", given)
    keeper.invited(registry.invitations(given)["p-0"], "invitations/0.json")
    (keeper.root / "labels.csv").write_text("record,label\np-0,low\n")
    named = {"table": keeper.root / "labels.csv"}
    named |= {"invitations": keeper.root / "invitations"}
    assert "does not say what your table holds" in keeper.refusal(
        keeper._run(named, ())
    )


def test_another_id_column_is_no_second_budget(tmp_path: Path) -> None:
    """Neither by --id, nor by a form, nor by new names in the same column."""
    server = steward(tmp_path / "steward")
    server.run()
    home = Hospital.at(tmp_path, "va")
    home.init("--cap", "2", "--cap-delta", "1e-3")
    home.receive(server)
    home.released()
    own = pd.read_csv(home.root / "patients.csv")
    own["mrn"] = [f"m{i}" for i in range(len(own))]
    own.to_csv(home.root / "patients.csv", index=False)
    assert "by the form in your ledger" in home.refusal("--new-release", id="mrn")
    form = home.root / "other.yaml"
    form.write_text(FORM.replace("id: patient", "id: mrn"))
    done = home.client("form", str(form), "--ledger", str(home.ledger))
    assert "nothing else changes" in str(done.exception)
    own.assign(patient=own["mrn"]).to_csv(home.root / "patients.csv", index=False)
    said = home.refusal("--new-release")
    assert "60 of 60 records are new to your ledger" in said


def test_strangers_are_more_than_half_new_while_known_ones_are_gone(ledger):
    """A table that grows is none; a ledger that knows nobody asks nothing."""
    refuse_new_ids(ledger, ["a", "b"])
    open_account(ledger, AccountOptions())
    ledger.reserve("r", list("abcd"), Budget(1.0), population=POPULATION, facts={})
    refuse_new_ids(ledger, list("abcdefghij"))
    refuse_new_ids(ledger, list("abx"))
    with pytest.raises(UserError, match="3 of 4 records are new"):
        refuse_new_ids(ledger, list("axyz"))


def test_a_refused_first_task_settles_nothing(tmp_path: Path) -> None:
    """Neither the stranger who asked, nor the default cap; the honest one is next."""
    server = steward(tmp_path / "steward")
    server.run()
    home = Hospital.at(tmp_path, "va")
    form = home.root / "form.yaml"
    form.write_text(FORM)
    home.client("form", str(form), "--ledger", str(home.ledger))
    home.receive(server)
    assert "no room" in home.refusal()  # the default cap holds no delta
    with Ledger(home.ledger) as own:
        standing = Account.from_ledger(own)
    assert (standing.server, standing.chosen, standing.sender_name) == (
        None,
        False,
        None,
    )
    home.init("--cap", "2", "--cap-delta", "1e-3")
    assert home.released()["new"]


@pytest.mark.parametrize("other", ["YES", "ye\u0455", "\uff59es"])
def test_classes_that_look_alike_are_no_form(other: str) -> None:
    """Nor a task of a hospital: who states them could not tell which is which."""
    with pytest.raises(ValueError, match="look alike"):
        Form(id=None, label="ill", classes=("yes", other), columns={})
    task = servers.example_task("transfer.moments", Level(1.0))
    document = task.to_json() | {"classes": ["yes", other]}
    with pytest.raises(UserError, match="look alike"):
        validate_task(document)
