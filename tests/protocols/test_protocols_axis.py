"""The axis of protocols: all on the same clients, each a setting of one run."""

import math
from pathlib import Path

import pytest

from curvote.base.errors import UserError
from curvote.chain.axis import Cell
from curvote.messages.arms import make_directions
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.settings import (
    describe_choices,
    expand_settings,
    labelled_parts,
    setting_name,
)
from curvote.pipeline.run.results import final_model, mean_scores
from curvote.systems.direct.system import choose_protocol
from tests import plain

EVERY = ["auto", "direct", "votes", "majority", "mrma"]
MANY = plain.TINY | {"protocols": EVERY, "learners": ["centroid"], "replicates": 2}


def configured(tmp_path: Path, **changes: object) -> PipelinesFile:
    """Return the file of a project with one changed pipeline."""
    return PipelinesFile(plain.write(tmp_path, tiny=MANY | changes))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    """Return the scores of a run of all protocols."""
    project = plain.write(tmp_path_factory.mktemp("many"), tiny=MANY)
    return mean_scores(project, plain.run(project))


def test_every_protocol_is_scored_at_every_epsilon(
    rows: list[dict[str, object]],
) -> None:
    """Under its own name, with the majority beside it."""
    for protocol in EVERY:
        for epsilon in (1, 4):
            mine = [
                row["method"]
                for row in rows
                if (row["protocol"], row["epsilon"]) == (protocol, epsilon)
            ]
            assert mine.count("majority") == 1
            assert len(mine) > 1 or protocol in {"majority", "auto"}


def test_all_protocols_have_the_same_clients(rows: list[dict[str, object]]) -> None:
    """The majority's labels and test clients do not depend on what else is run."""
    for epsilon in (1, 4):
        errors = {
            row["misclassification"]
            for row in rows
            if row["method"] == "majority" and row["epsilon"] == epsilon
        }
        assert len(errors) == 1


def test_auto_and_direct_share_what_they_compute(tmp_path: Path) -> None:
    """Of the same arm nothing is drawn twice."""
    steps = plain.plan(plain.write(tmp_path, tiny=MANY | {"epsilon": [1.6, 8]})).steps
    of = {
        protocol: {
            step.key
            for step in steps
            if step.cell["protocol"] == protocol
            and step.stage.name not in ("aggregate", "report")
        }
        for protocol in ("auto", "direct")
    }
    for epsilon in (1.6, 8):
        taken = choose_protocol(140, 4, epsilon)
        assert taken == choose_protocol(140, 4, epsilon, of_direct=True)
    assert of["auto"] == of["direct"]
    assert of["auto"]


def test_an_entry_may_have_a_label_and_set_keys() -> None:
    """The same protocol twice, told apart by its label; the pipeline stays as it is."""
    entry = {"name": "direct", "label": "wide", "intercept": 2.0}
    given = MANY | {"protocols": ["direct", entry]}
    (first, plainly), (second, widely) = expand_settings(given)
    assert (setting_name(first), setting_name(second)) == ("direct", "wide")
    assert "direct" not in plainly
    assert widely["direct"] == {"intercept": 2.0}
    assert {own["project"]["judge"] for own in (plainly, widely)} == {"rescaled"}
    assert given["project"]["judge"] == "coefficients"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"protocols": ["mrma", "mrma"]}, "mrma stands twice; give each a label"),
        ({"protocols": "mrma"}, "must be a list"),
        ({"protocols": [{"label": "mine"}]}, "give its name"),
        ({"grid": {"protocol": ["mrma"]}}, "list protocols under `protocols`"),
        ({"protocols": ["derect"]}, "Did you mean 'direct'?"),
        ({"protocols": [{"name": "mrma", "seed": 3}]}, "same for all settings"),
        ({"protocols": ["mrma"], "train": None}, "says who learns from how many"),
        ({"protocols": ["mrma"], "learners": []}, "`curvote list` names them"),
        (
            {"protocols": ["mrma"], "project": MANY["project"] | {"rescale": "none"}},
            "`direct` hides their direction",
        ),
    ],
)
def test_what_is_wrong_is_said(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    """With its place in the file."""
    with pytest.raises(UserError, match=message) as caught:
        configured(tmp_path, **changes).configure_pipeline("tiny")
    assert "pipelines.yaml:" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("direct", {}, "so it judges z: rescaled"),
        ("votes", {"votes": {"directions": 141}}, "140 clients"),
    ],
)
def test_what_one_system_asks_is_said(
    tmp_path: Path, name: str, changes: dict[str, object], message: str
) -> None:
    """With its place in the file."""
    own = plain.of(name, given=MANY | {"protocols": []} | changes)
    file = PipelinesFile(plain.write(tmp_path, tiny=own))
    with pytest.raises(UserError, match=message) as caught:
        file.configure_pipeline("tiny")
    assert "pipelines.yaml:" in str(caught.value)


def test_direct_needs_neither_learners_nor_sizes(tmp_path: Path) -> None:
    """A pipeline says nothing about what its protocol has not."""
    given = {key: MANY[key] for key in ("source", "clients", "epsilon", "seed")}
    given |= {"protocol": "direct", "project": {"basis": "bspline", "size": 4}}
    project = plain.write(tmp_path, tiny=given | {"replicates": 2})
    found = mean_scores(project, plain.run(project))
    assert {row["learner"] for row in found} == {None}


def test_what_auto_took_is_said_with_its_reason(tmp_path: Path) -> None:
    """A line for each epsilon; what is concrete leaves nothing open."""
    config = (
        configured(tmp_path, epsilon=[0.1, 4, 100]).configure_pipeline("tiny").values()
    )
    lines = [line for line in describe_choices(config) if line.startswith("auto")]
    assert len(lines) == 3
    assert "majority" in lines[0]
    assert "expect nothing better than the majority" in lines[0]
    assert "joint" in lines[2]
    own = (part.settings for _, part in labelled_parts(config))
    chosen = {taken.protocol for taken in own if taken.called == "auto"}
    assert "majority" in chosen
    assert "auto" not in chosen


def test_no_record_steers_what_auto_takes(tmp_path: Path) -> None:
    """Clients with another signal, or none, and other draws of them: the same arms."""
    taken = set()
    for index, slope in enumerate(([0.0], [9.0, -9.0])):
        source = {"name": "simulated", "points": 20, "slope": slope}
        file = configured(tmp_path / str(index), source=source, seed=index)
        config = file.configure_pipeline("tiny").values()
        parts = [part for _, part in labelled_parts(config) if part.method]
        taken.add(tuple((p.settings.protocol, p.method) for p in parts))
    assert len(taken) == 1


def test_the_rule_asks_for_more_where_there_is_less_noise() -> None:
    """Votes, mean, joint, in this order, whichever of N and epsilon grows."""
    order = ["majority", "votes", "mean", "joint"]
    for d, middle in ((3, 1000), (5, 2000)):
        by_n = [choose_protocol(n, d, 1.0).method for n in (5, 200, middle, 10**6)]
        same = (middle / 1500) ** 0.5
        by_epsilon = [choose_protocol(1500, d, e).method for e in (0.04, 0.3, same, 5)]
        assert by_n == by_epsilon == order


def test_stated_shares_leave_neither_votes_nor_the_majority() -> None:
    """Reports read with them are no worse; a doubtful centre has two rounds."""
    for n, d, k in ((20, 3, 2), (300, 20, 5), (3000, 12, 10)):
        for epsilon in (0.1, 1.0, 5.0):
            public = [1 / k] * k
            taken = choose_protocol(n, d, epsilon, n_classes=k, balance=public)
            alone = choose_protocol(n, d, epsilon, n_classes=k, of_direct=True)
            assert taken == alone
    assert choose_protocol(10**5, 3, 1.0, doubtful=True).arm == "two"
    for wrong in ([0.5], [0.7, 0.7], [1.0, 0.0], [math.nan, 1.0]):
        with pytest.raises(UserError, match="balance"):
            choose_protocol(300, 3, 1.0, balance=wrong)


@pytest.mark.parametrize("protocol", ["direct", "auto"])
def test_stated_shares_reach_decoding_and_no_release(
    tmp_path: Path, protocol: str
) -> None:
    """Neither what is read nor what is drawn has them in its key."""
    keys = []
    for index, more in enumerate(
        ({}, {"balance": [0.5, 0.5]}, {"balance": [0.8, 0.2]})
    ):
        given = MANY | {"protocols": [], "epsilon": [8]}
        given |= {"source": MANY["source"] | more}
        given |= {"project": {"basis": "bspline", "size": 4}}
        own = plain.of(protocol, given=given)
        steps = plain.plan(plain.write(tmp_path / str(index), tiny=own)).steps
        keys.append({step.stage.name: step.key for step in steps})
    read = {"aggregate", "report"}
    for name in keys[0]:
        assert len({key[name] for key in keys}) == (3 if name in read else 1), name
    wrong = MANY | {"source": MANY["source"] | {"balance": [0.8, 0.3]}}
    with pytest.raises(UserError, match="adding up to 1"):
        configured(tmp_path / "wrong", **wrong).configure_pipeline("tiny")


def test_a_second_moment_of_many_numbers_is_not_asked_for() -> None:
    """It grows with their square; whoever names such an arm is told."""
    assert choose_protocol(10**7, 199, 5.0).arm == "mean"
    assert choose_protocol(10**7, 198, 5.0).arm == "joint"
    with pytest.raises(UserError, match=r"write direct\.arm: mean, or take fewer"):
        make_directions("joint", 199, "tanh", "auto")


def test_noise_times_n_epsilon_squared_is_nearly_constant() -> None:
    """What the rule asks is how large N epsilon^2 is (MRMA 16)."""
    for d in (3, 10, 50):
        for epsilon in (0.1, 1.0, 2.0):
            noise = choose_protocol(3000, d, epsilon).noise
            assert 5 < noise * 3000 * epsilon**2 < 6.6


def test_auto_ends_in_a_classifier_of_raw_curves(tmp_path: Path) -> None:
    """Whatever it took: what a user loads takes curves and gives labels."""
    project = plain.write(tmp_path, tiny=MANY | {"epsilon": [0.1, 100]})
    record = plain.run(project)
    for epsilon in (0.1, 100.0):
        named = {"protocol": "auto", "setting": "auto", "epsilon": epsilon}
        model = final_model(project, record, Cell.from_mapping(named))
        assert model.predict([[0.0] * 20]).tolist()[0] in {"-1", "+1"}
