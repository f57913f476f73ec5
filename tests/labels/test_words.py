"""Private words: columns that are hidden in one code with the label."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from curvote import load_run
from curvote.base.errors import UserError
from curvote.chain.stage import StageContext
from curvote.cli import app
from curvote.cli.commands import client
from curvote.data.columns import Feature, category_feature, feature_facts
from curvote.messages.answer import describe_answer, validate_task
from curvote.pipeline.run.results import final_views
from curvote.systems.labels import messages, stages
from curvote.systems.labels.codes.codes import Codes
from curvote.systems.labels.codes.encoders import build_encoder, signal_ratio
from curvote.systems.labels.method import scoring
from curvote.systems.labels.method.classifier import (
    LabelClassifier,
    PrivateLabelClassifier,
)
from curvote.systems.labels.words import (
    joint_classes,
    joint_places,
    label_chances,
    private_columns,
    word_places,
    words_of,
)
from curvote.wire.signing import open_signed
from tests import plain
from tests.exchange import Server
from tests.hospitals import take
from tests.labels.test_registry import _predict
from tests.registry import CLASSES, SOURCE, Keeper, invitations, people, server, told

FEATURES = [
    category_feature("city", ["rome", "bonn", "oslo"], "-"),
    Feature("age", "years", 18, 48, "-"),
    Feature("tier", "", 1, 3, "-", integral=True),
    Feature("year", "", 2011, 2023, "-", integral=True),
    *(Feature(f"sex = {sex}", "0 or 1", 0, 1, "-") for sex in "fm"),
]
FACTS = {"classes": ["no", "yes"], **feature_facts(FEATURES)}
RECORDS = np.array(
    [
        [0, 18, 1, 2011, 1, 0],
        [1, 28, 2, 2014, 0, 1],
        [2, 47.9, 3, 2015, 0, 0],  # no sex is known
        [2, 90, 0, 2020, 1, 0],  # beyond the bounds: the nearest
        [2, np.nan, 3, 2023, 0, 1],
    ]
)
WORDS = {
    "city": (["bonn", "oslo", "rome"], [0, 1, 2, 2, 2]),
    "age": (["18 to 28", "28 to 38", "38 to 48"], [0, 1, 2, 2, -1]),
    "tier": (["1", "2", "3"], [0, 1, 2, 0, 2]),
    "year": (["2011 to 2014", "2015 to 2019", "2020 to 2023"], [0, 0, 1, 2, 2]),
    "sex": (["f", "m"], [0, 1, -1, 0, 1]),
}


def private(*names: str, bins: int = 3) -> list[dict[str, Any]]:
    """Return these columns of the features above as private ones."""
    return private_columns(FACTS, [name for name in WORDS if name not in names], bins)


@pytest.mark.parametrize("name", WORDS)
def test_a_column_has_public_words(name: str) -> None:
    """Categories, whole numbers or bins, whatever the records are."""
    words, places = WORDS[name]
    assert words_of(private(name)) == {name: words}
    assert word_places(private(name), RECORDS).tolist() == places


def test_words_of_several_columns_are_one_place_with_the_label() -> None:
    """In the order of the joint classes; an owner always has one."""
    columns, labels = private("tier", "sex"), np.array([0, 1, 0, 1, 1])
    classes = joint_classes(["no", "yes"], words_of(columns))
    assert (len(classes), classes[0], classes[-1]) == (12, "no + f + 1", "yes + m + 3")
    own = [classes[place] for place in joint_places(columns, labels, RECORDS)]
    assert own[:3] == ["no + f + 1", "yes + m + 2", "no + f + 3"]
    assert word_places(columns, RECORDS).tolist() == [0, 4, -1, 0, 5]


@pytest.mark.parametrize(
    ("public", "bins", "words"),
    [
        (["town"], 3, "town"),
        ([*WORDS], 3, "every column is public"),
        (["sex"], 20, "at most 1024 of 60"),
    ],
)
def test_columns_that_cannot_be_are_refused(public, bins, words) -> None:
    """Each in words, before anything is asked."""
    with pytest.raises(UserError, match=words):
        private_columns(FACTS, public, bins)


def test_a_prediction_is_that_of_the_law_given_the_word() -> None:
    """By Bayes' rule, also where the word is missing or has no chance at all."""
    law = np.random.default_rng(0).dirichlet(np.ones(6), size=4)
    law[0] = [0.1, 0, 0.2, 0.3, 0, 0.4]  # nobody has the second word
    chances = label_chances(law, 3)
    for row, word in np.ndindex(4, 3):
        pair = law[row, [word, 3 + word]]
        expected = law[row].reshape(2, 3).sum(axis=1) if not pair.any() else pair
        np.testing.assert_allclose(
            chances[row, word], expected / expected.sum(), atol=1e-7
        )
    np.testing.assert_allclose(chances[:, 3, 1], law[:, 3:].sum(axis=1))


def test_scores_by_true_codes_are_what_a_person_would_count() -> None:
    """All that a model is scored by, with the words and without each of them."""
    rng, columns = np.random.default_rng(1), private("tier", "sex")
    n, labels, words = 400, rng.integers(2, size=400), rng.integers(6, size=400)
    X = np.column_stack([labels + 0.5 * (words % 3) + rng.normal(0, 0.8, n)])
    names = np.array(joint_classes(["no", "yes"], words_of(columns)))
    codes = Codes.plain(names[labels * 6 + words], names)
    model = PrivateLabelClassifier("knn", epsilon=np.inf, classes=names, random_state=0)
    model.fit(X, codes)
    scorings = scoring.word_scorings(model, X, columns)
    joint = model.predict_both(X)
    scores = {
        name: scoring.score_contributions(joint, X, codes, how).mean()
        for name, how in scorings.items()
    }
    proba = model.predict_given_words(X, 6).proba[np.arange(n), words]
    own = proba[np.arange(n), labels]
    assert scores["accuracy"] == np.mean(proba.argmax(axis=1) == labels)
    assert scores["log_loss"] == pytest.approx(-np.log(own).mean())
    cube = joint.proba.reshape(n, 2, 2, 3)
    of_sex = cube.sum(axis=3)[np.arange(n), :, words // 3].argmax(axis=1)
    of_tier = cube.sum(axis=2)[np.arange(n), :, words % 3].argmax(axis=1)
    assert scores["accuracy without tier"] == np.mean(of_sex == labels)
    assert scores["accuracy without sex"] == np.mean(of_tier == labels)


BENT: list[tuple[dict[str, Any], str]] = [
    ({"words": {"tier": ["1", "3"]}}, "each label with each of the words"),
    ({"words": {"tier": ["1"]}}, "two or more"),
    ({"words": {"tier": ["1", "2", "3"], "x": ["1", "2"] * 9}}, "each label"),
    ({"words": {str(i): [*map(str, range(1000))] for i in range(9)}}, "each label"),
    ({"words": {"tier": "123"}}, "words"),
    ({"words": {}}, "one form"),
]


@pytest.mark.parametrize(("bent", "words"), BENT)
def test_a_task_that_contradicts_its_words_is_refused(bent, words) -> None:
    """Its classes are each label with each word, and no others."""
    task = messages.single_round_task(
        ["no", "yes"], 1.0, "auto", words={"t": ["1", "2"]}
    )
    assert validate_task(task.to_json()).digest() == task.digest()
    said = "a class of no + 1/no + 2/yes + 1/yes + 2, each a label and t"
    assert said in describe_answer(task, None)
    classes = joint_classes(["no", "yes"], {"tier": ["1", "2", "3"]})
    with pytest.raises(UserError, match=words):
        validate_task(task.to_json() | {"classes": classes} | bent)


def test_two_who_differ_in_a_private_column_differ_in_their_code_alone() -> None:
    """No table of the server's, and nothing public, holds a private number."""

    def tables(tier: float) -> tuple[Any, Any]:
        clients = {
            "client_id": np.arange(40),
            "label": np.arange(40) % 2,
            "group": np.arange(40),
            "curve": np.tile(RECORDS[0], (40, 1)) + np.arange(40)[:, None] % 3,
        }
        clients["curve"][:, 2] = tier
        source = SimpleNamespace(metadata=FACTS, columns=lambda *_: clients)
        params = {"public.columns": ["city", "age"], "public.bins": 3, "seed": 1}
        params |= {"public.scale": "auto", "public.reduce": "none"}
        params |= {"public.features": None, "public.deskew": False}
        params |= {"public.size": None, "labels.encoder": "auto", "epsilon": 1.0}
        params |= {"clients": {"train": 40, "vote": 0, "test": 0, "public": 0}}
        params |= {"source.groups": None}
        inputs = {"ingest": source}
        facts = stages.features_metadata(inputs, params)
        public = StageContext("features", (0,), (1,), inputs, params, facts)
        task = stages.privatize_metadata(inputs, params)
        sent = StageContext("privatize", (0,), (1,), inputs, params, task)
        return (facts, task, stages.features(public)), stages.privatize(sent)

    (first, code), (second, other) = tables(1.0), tables(3.0)
    assert first[:2] == second[:2]
    for name, values in first[2]["features"].items():
        np.testing.assert_array_equal(values, second[2]["features"][name])
    assert first[2]["features"]["values"].shape == (40, 2)
    assert (code["codes"]["record"] == other["codes"]["record"]).all()
    assert (code["codes"]["code"] != other["codes"]["code"]).any()


STUDY: dict[str, Any] = {
    "source": {"name": "employee"},
    "clients": {"train": 300, "test": 100},
    "public": {"columns": ["JoiningYear", "City", "Education"], "bins": 2},
    "learners": ["knn"],
    "epsilon": [8],
    "replicates": 1,
}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"labels": {"rounds": 2}}, "two rounds ask for a label alone"),
        ({"public": {"columns": []}}, "columns"),
        ({"public": {"columns": ["City"], "bins": 1}}, "must be 2 or more"),
        ({"source": SOURCE, "clients": {}}, "which columns are not in the file"),
    ],
)
def test_what_has_no_private_words_says_so(tmp_path, changes, words) -> None:
    """By the plan, with its reason."""
    project = plain.write(tmp_path, tiny={"protocol": "labels", **STUDY, **changes})
    with pytest.raises(UserError, match=words):
        plain.plan(project)


TIERS = ["1", "2", "3"]
FORM = "{id: record, label: label, columns: {}, classes: [%s]}"


def test_people_and_a_registry_hide_label_and_word_in_one_code(tmp_path: Path) -> None:
    """Sent by envelope, charged once; a person who asks is told by the own word."""
    n = 160
    table = people(n).assign(tier=np.random.default_rng(5).choice(TIERS, n))
    table["label"] = _turned(table)
    steward = server(
        tmp_path / "server",
        table.drop(columns="tier"),
        source=SOURCE | {"private": {"tier": TIERS}},
        epsilon=12,
    )
    steward.run()
    task = open_signed(steward.published("code")[0].read_bytes()).document["task"]
    assert task["words"] == {"tier": TIERS}
    assert task["classes"] == [f"{name} + {tier}" for name in CLASSES for tier in TIERS]
    _answer(tmp_path, steward, table.rename(columns={"person": "record"}))
    assert take(steward) == {"accepted": n, "refused": {}, "left": {}}
    record = steward.run()[1]
    assert record.status == "completed"
    (view,) = final_views(steward.project, record)
    honest = view.columns("train", "honest")
    assert [*honest["scoring"][[0, -1]]] == ["accuracy", "accuracy without tier"]
    assert honest["value"][0] > honest["value"][-1]
    new = people(60, seed=1).assign(tier=np.random.default_rng(6).choice(TIERS, 60))
    new["label"] = _turned(new)
    shown = new.drop(columns="label")
    shown.loc[[1, 2], "tier"] = ["9", None]
    result = _predict(steward, tmp_path, shown)
    assert "tier is none of the categories 1, 2, 3 in line 3" in result.stderr
    said = pd.read_csv(tmp_path / "said.csv")["prediction"]
    assert np.flatnonzero(said.isna()).tolist() == [1]
    assert (said == new["label"]).mean() > 0.8
    model = load_run("far", steward.project.root).model()
    assert isinstance(model, LabelClassifier)
    assert list(model.classes_) == list(CLASSES)
    # Without the word nobody can tell.
    blind, sure = (
        model.predict_proba(shown.assign(tier=tier)).max(axis=1).mean()
        for tier in (None, new["tier"])
    )
    assert blind < 0.7 < sure


def _turned(table: pd.DataFrame) -> pd.Series:
    """Return labels that are known only with the private word."""
    place = table["label"].map(CLASSES.index) + table["tier"].astype(int)
    return (place % 3).map(dict(enumerate(CLASSES)))


def _answer(root: Path, steward: Server, table: pd.DataFrame) -> None:
    """Let one person, and a registry with a column for the word, answer and send."""
    invited = invitations(steward)
    joint = table["label"] + " + " + table["tier"]
    person, registry = (Keeper.at(root / x, steward) for x in ("person", "registry"))
    for each in (person, registry):
        cap = ["init", "--cap", "12", "--ledger", str(each.ledger)]
        assert CliRunner().invoke(client.app, cap).exit_code == 0
    person.invited(invited[table["record"][0]])
    assert told(person.label("--json", label=joint[0]))["epsilon"] == 12
    classes = [f"{name} + {tier}" for name in CLASSES for tier in TIERS]
    registry.state(FORM % ", ".join(classes))
    for record in table["record"][1:]:
        registry.invited(invited[record], f"invitations/{invited[record].file_name}")
    table[["record", "label", "tier"]][1:].to_csv(registry.root / "l.csv", index=False)
    given = {"table": registry.root / "l.csv"}
    given |= {"invitations": registry.root / "invitations"}
    done = told(registry._run(given, ("--json",)))
    assert (done["records"], done["epsilon"]) == (len(table) - 1, 12)
    for each in (person, registry):
        each.send(steward)


def test_advice_is_the_law_of_the_codes() -> None:
    """A column less: W times as many people share a word, and classes are fewer."""
    words = ["--private", "tier=3", "--private", "age=4", "--epsilon", "1"]
    result = CliRunner().invoke(app.app, ["advise", *words, "--json"])
    tier, age = json.loads(result.stdout)
    signal = {
        k: signal_ratio(build_encoder("subset_selection", k, 1.0)) for k in (6, 8, 24)
    }
    assert tier["public"] == pytest.approx(3 * signal[8] / signal[24])
    assert age["left out"] == pytest.approx(16 * signal[6] / signal[24])
    wrong = CliRunner().invoke(app.app, ["advise", "--private", "tier", *words[2:]])
    assert "NAME=words" in str(wrong.exception)
