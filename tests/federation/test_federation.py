"""Many servers: who judges what, who is reversed, and servers that answer badly."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from curvote.base.errors import UserError
from curvote.chain.stage import StageContext
from curvote.curves.basis import identity
from curvote.curves.curve_classifier import CurveClassifier
from curvote.curves.encoding import Encoding, Linear
from curvote.data.simulation import simulated
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.run.results import mean_scores, replicate_scores, run_notes
from curvote.pipeline.store.arrow import to_arrow
from curvote.report.page import load_page_data
from curvote.systems.federated import stages
from curvote.systems.federated.model import ServersClassifier
from curvote.systems.federated.stages import FAULTS
from curvote.systems.federated.system import SYSTEM
from tests import plain
from tests.federated import BY_NAME, Study
from tests.memory import Memory

TABLES = ("evaluate", "aggregate", "exchange", "reevaluate", "combine", "report")


@pytest.fixture(scope="module")
def few() -> Study:
    """Two replicates of five servers, at a privacy level where votes tell a lot."""
    return Study(2, (2, 1, 2), epsilon=5.0)


def _total(made: Memory, place: tuple[int, int]) -> int:
    return int(made.columns("votes", place)["n"].sum())


def _same(one: dict[str, object], other: dict[str, object]) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(
    ("split", "own", "foreign", "share"),
    [("clients", 300, 100, 1.0), ("budget", 400, 400, 0.5), ("single", 400, 0, 1.0)],
)
def test_every_voter_spends_its_epsilon_once(
    few: Study, split: str, own: int, foreign: int, share: float
) -> None:
    """400 voters, 15 own and 5 foreign classifiers: one whole vote, or two halves."""
    made = few.run(federation__split=split)
    for place in few.places:
        assert _total(made["evaluate"], place) == own
        assert _total(made["reevaluate"], place) == foreign
        counts = made["evaluate"].columns("votes", place)["n"]
        assert counts.max() - counts.min() <= 1
    for stage in ("evaluate", "reevaluate"):
        facts = made[stage].metadata
        assert facts["epsilon"] == pytest.approx(5 * share, rel=1e-12)


def test_no_voter_judges_own_and_foreign_classifiers(few: Study) -> None:
    """Under `clients` the two polls ask different clients; together they ask all."""
    values = few.values | {"federation.split": "clients"}
    for place in few.places:
        context = StageContext("reevaluate", place, few.sizes, {}, values, {})
        own = np.flatnonzero(stages.voter_parts(context, 400) < values["train.count"])
        foreign = stages.remaining_voters(context, 400)
        assert sorted([*own, *foreign]) == list(range(400))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_bad_server_is_just_absent(few: Study, fault: str) -> None:
    """Whatever it sends, the others go on as if it had sent nothing, and say why."""
    bad = 1
    sound, silent = few.run(), few.run(federation__faults={bad: "silent"})
    faulty = few.run(federation__faults={str(bad): fault})
    for i in few.places:
        offers = faulty["exchange"].columns("offers", i)
        if i[1] == bad:  # its own one is sound, and it hears the others
            assert offers["accepted"].all()
            assert _same(
                faulty["combine"].columns("ensemble", i),
                sound["combine"].columns("ensemble", i),
            )
            continue
        assert offers["sender"][~offers["accepted"]].tolist() == [bad]
        assert offers["reason"][bad]
        assert not any(offers["reason"][offers["accepted"]])
        assert bad not in faulty["reevaluate"].columns("votes", i)["learner"]
        for stage, table in (("reevaluate", "votes"), ("combine", "ensemble")):
            assert _same(
                faulty[stage].columns(table, i), silent[stage].columns(table, i)
            )
    np.testing.assert_array_equal(few.scores(faulty, "mrma"), few.scores(sound, "mrma"))


def test_a_server_that_hears_nobody_goes_on_alone(few: Study) -> None:
    """If all are silent, each has its own classifier, judged once more or not."""
    made = few.run(federation__faults=dict.fromkeys(range(few.count), "silent"))
    for place in few.places:
        ensemble = made["combine"].columns("ensemble", place)
        assert ensemble["learner"].tolist() == [place[1]]
        assert ensemble["weight"].tolist() == [1.0]


def test_a_single_server_asks_and_tells_nobody(few: Study) -> None:
    """Split `single`: the final classifier is the own one, and no vote is wasted."""
    made = few.run(federation__split="single")
    np.testing.assert_array_equal(
        few.scores(made, "federated"), few.scores(made, "mrma")
    )
    for place in few.places:
        offers = made["exchange"].columns("offers", place)
        assert offers["sender"].tolist() == [place[1]]


@pytest.mark.parametrize("split", ["clients", "budget", "single"])
def test_tables_keep_their_contracts(few: Study, split: str) -> None:
    """Also where servers were dropped."""
    made = few.run(federation__split=split, federation__faults={0: "nan"})
    for stage in TABLES:
        for table in BY_NAME[stage].tables:
            for place, columns in made[stage].tables[table.name].items():
                to_arrow(table, ("replicate", "server")[: len(place)], place, columns)


def test_a_result_does_not_depend_on_its_batch(few: Study) -> None:
    """One server at a time gives the same bits as all at once."""
    alone = Study(2, (2, 1, 2), block=1, epsilon=5.0).run()
    together = few.run()
    for stage in TABLES:
        for name, places in together[stage].tables.items():
            for place, columns in places.items():
                assert _same(columns, alone[stage].columns(name, place)), stage


def test_an_opposite_server_is_reversed(few: Study) -> None:
    """Groups 1 and 3 point in opposite directions; at epsilon 5 everybody notices."""
    made = few.run()
    groups = np.array([1, 1, 2, 3, 3])
    for place in few.places:
        mine = groups[place[1]]
        if mine == 2:
            continue
        ensemble = made["combine"].columns("ensemble", place)
        opposite = (groups != mine) & (groups != 2)
        assert ensemble["reversed"][opposite].all()
        assert not ensemble["reversed"][groups == mine].any()
        assert ensemble["weight"][opposite].all()


def test_releases_add_up_to_epsilon() -> None:
    """What an evaluation client releases is one vote, or two with half each."""
    config = {
        "privatize": {"mechanism": "laplace", "params": {}, "label_share": "equal"},
        "federation": {"split": "budget"},
    }
    spent = [
        r.epsilon
        for r in SYSTEM.describe_messages(config, 4)
        if r.who == "evaluation client"
    ]
    assert spent == ["epsilon / 2", "epsilon / 2"]
    config["federation"]["split"] = "clients"
    spent = [
        r.epsilon
        for r in SYSTEM.describe_messages(config, 4)
        if r.who == "evaluation client"
    ]
    assert spent == ["epsilon"]


def of_servers(*signs: float) -> ServersClassifier:
    """Return servers that say "yes" where sign * a is above 0, whatever b is."""
    encoding = Encoding(identity(2), "max_abs")
    lines = (Linear([sign, 0.0], 0.0, "rescaled") for sign in signs)
    made = (CurveClassifier.of(encoding, "ab", line, ("no", "yes")) for line in lines)
    return ServersClassifier(list(made))


ROWS = pd.DataFrame({"a": [1.0, 1, -1], "b": 0.0, "server": [0, 1, 1]})


def test_each_row_is_judged_by_its_own_server() -> None:
    """Columns are found by name; labels are the publisher's."""
    model = of_servers(1, -1)
    assert model.columns == ["server", "a", "b"]
    assert list(model.classes_) == ["no", "yes"]
    assert list(model.predict(ROWS)) == ["yes", "no", "yes"]
    assert list(model.predict(ROWS.astype(float))) == ["yes", "no", "yes"]
    assert list(model.predict(ROWS.astype(int))) == ["yes", "no", "yes"]
    assert model.predict(ROWS[:0]).tolist() == []


def test_what_is_no_number_is_refused() -> None:
    """MLflow lets any column pass: the model itself says what is wrong."""
    with pytest.raises(UserError, match="no number"):
        of_servers(1, -1).predict(ROWS.assign(b="high"))


@pytest.mark.parametrize("server", [2, -1, 0.5, np.nan, "0"])
def test_a_server_that_there_is_not_is_refused(server: object) -> None:
    """By its number, before anything is judged."""
    with pytest.raises(UserError, match="it must be from 0 to 1"):
        of_servers(1, -1).predict(ROWS.assign(server=server))


def test_the_columns_that_are_wanted_are_told() -> None:
    """All of them where there are few, and where none has a name."""
    with pytest.raises(UserError, match="1 columns are missing, such as 'server'"):
        of_servers(1).predict(ROWS.drop(columns="server"))
    with pytest.raises(UserError, match="3, by name: 'server', 'a', 'b'"):
        of_servers(1).predict(ROWS.to_numpy())


SERVERS = plain.TINY | {
    "protocol": "federated",
    "source": {"name": "simulated_servers", "points": 20, "servers": [1, 1, 1]},
    "learners": ["centroid"],
    "epsilon": [4],
    "replicates": 3,
}


def test_a_bad_server_is_reported_and_the_others_go_on(tmp_path: Path) -> None:
    """NaN and silence end nobody's run; the run and its page say who and why."""
    faults = {"faults": {0: "nan", 2: "silent"}}
    project = plain.write(tmp_path, tiny=SERVERS | {"federation": faults})
    record = plain.run(project)
    said = [
        "server 0 was dropped: sent numbers that are not finite",
        "server 2 was dropped: sent nothing",
    ]
    assert run_notes(project, record) == said
    assert set(said) <= set(load_page_data(project, record).notes)
    assert {row["replicates"] for row in mean_scores(project, record)} == {3}


def test_where_all_answer_nobody_is_reported(tmp_path: Path) -> None:
    """Nor where a pipeline has one server."""
    for name, pipeline in (("many", SERVERS), ("one", plain.TINY)):
        project = plain.write(tmp_path / name, tiny=pipeline)
        assert run_notes(project, plain.run(project)) == []


def test_the_servers_of_a_replicate_count_once(tmp_path: Path) -> None:
    """Two servers of a group: one value a replicate stands behind its error."""
    source = SERVERS["source"] | {"servers": [2, 1, 1]}
    project = plain.write(tmp_path, tiny=SERVERS | {"source": source})
    record = plain.run(project)
    table = replicate_scores(project, record)
    table = table[table["metric"] == "misclassification"]
    mine = table[(table["group"] == "1") & (table["method"] == "federated")]
    mine = mine[mine["metric"] == "misclassification"]
    assert len(mine) == 2 * 3
    (row,) = (
        row
        for row in mean_scores(project, record)
        if (row["group"], row["method"]) == ("1", "federated")
    )
    each = mine.groupby("replicate")["value"].mean()
    assert row["misclassification"] == pytest.approx(each.mean())
    assert row["se"] == pytest.approx(each.std(ddof=1) / 3**0.5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": {"name": "simulated", "points": 20}}, "several servers"),
        ({"protocol": "mrma"}, "several servers"),
        ({"federation": {"faults": {3: "nan"}}}, "no server 3: they are 0 to 2"),
        ({"clients": {"train": 60, "vote": 7, "test": 9}}, "8 classifiers, but only 7"),
    ],
)
def test_what_cannot_be_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    """Before anything runs, in words."""
    project = plain.write(tmp_path, tiny=SERVERS | changes)
    with pytest.raises(UserError, match=message):
        PipelinesFile(project).configure_pipeline("tiny")


CHOSEN = simulated.SERVER_CURVES.Parameters(points=501)
GRID = np.linspace(0, 1, 501)
PHI = np.sqrt(2) * np.cos(np.pi * np.outer(np.arange(50), GRID))
PHI[0] = 1


def test_servers_belong_to_three_groups() -> None:
    """Ten, five and ten of them, unless other sizes are given; 0 is a size."""
    groups = [
        simulated.group_of(CHOSEN, int(k))
        for k in simulated.SERVER_CURVES.servers(CHOSEN)
    ]
    assert groups == [1] * 10 + [2] * 5 + [3] * 10
    other = simulated.SERVER_CURVES.Parameters(servers=(1, 0, 2))
    assert [simulated.group_of(other, k) for k in range(3)] == [1, 3, 3]
    assert simulated.SERVER_CURVES.facts(other)["groups"] == [1, 3, 3]
    assert json.dumps(simulated.SERVER_CURVES.facts(CHOSEN))


@pytest.mark.parametrize("servers", [[0, 0, 0], [1, 2], [1, -1, 1], [1.5, 1, 1]])
def test_impossible_groups_are_refused(servers: list[float]) -> None:
    """Three sizes, whole and not negative, and at least one server."""
    with pytest.raises(ValidationError):
        simulated.SERVER_CURVES.Parameters.model_validate({"servers": servers})


def test_the_process_has_the_stated_covariance() -> None:
    """The closed form agrees with a quadrature of phi_m K phi_n on a fine grid."""
    fine = np.linspace(0, 1, 2001)
    weights = np.full(2001, 1 / 2000)
    weights[[0, -1]] /= 2
    phi = np.sqrt(2) * np.cos(np.pi * np.outer(np.arange(50), fine)) * weights
    phi[0] = weights
    kernel = np.exp(-15 * np.abs(fine[:, None] - fine))
    away = simulated.process_covariance() - phi @ kernel @ phi.T
    assert np.abs(away).max() < 2e-6


def test_slopes_of_a_group_have_its_law() -> None:
    """Coefficients of groups 1 and 3 lie in their ranges, group 2's covary as stated.

    The latter by the mean of b' C^-1 b, which is 50 with variance 100/n.
    """
    rng, n = np.random.default_rng(3), 400
    decay = np.arange(1, 51) ** -2.0 * (-1.0) ** np.arange(50)
    low, high = (
        np.array([simulated.draw_slope(rng, g) for _ in range(n)]) / decay
        for g in (1, 3)
    )
    for gamma, centre in ((low, -5), (high, 5)):
        assert np.abs(gamma - centre).max() <= 3 * (1 + 1e-12)
        assert abs(gamma.mean() - centre) < 5 * np.sqrt(3 / gamma.size)
    drawn = np.array([simulated.draw_slope(rng, 2) for _ in range(n)])
    inverse = np.linalg.inv(simulated.process_covariance())
    mean = np.einsum("ij,jk,ik->i", drawn, inverse, drawn).mean()
    assert abs(mean - 50) < 5 * np.sqrt(100 / n)


@pytest.mark.parametrize("server", [0, 3, 12, 24])
def test_labels_follow_the_slope_of_their_server(server: int) -> None:
    """The logit is alpha0 + integral X beta: no surprise is left (5 errors)."""
    n = 20_000
    slope = simulated.draw_slope(
        np.random.default_rng(server), simulated.group_of(CHOSEN, server)
    )
    clients = simulated.SERVER_CURVES.clients(
        CHOSEN, n, np.random.default_rng(server), server
    )
    logit = 0.1 + np.trapezoid(clients["curve"] * (slope @ PHI), GRID, axis=1)
    surprise = clients["label"] - 1 / (1 + np.exp(-logit))
    for direction in (np.ones(n), logit - logit.mean()):
        away = surprise * direction
        assert abs(away.mean()) < 5 * away.std() / np.sqrt(n)
    assert np.abs(logit - 0.1).mean() > 0.1


def test_every_instance_draws_a_slope_of_its_own() -> None:
    """One generator, one server; another generator, another slope."""
    first, again, other = (
        simulated.SERVER_CURVES.clients(CHOSEN, 30, np.random.default_rng(seed), 1)
        for seed in (5, 5, 6)
    )
    for name, column in first.items():
        np.testing.assert_array_equal(column, again[name])
    assert not np.array_equal(first["curve"], other["curve"])


GROUPS = np.repeat([1, 2, 3], [4, 1, 4])


@pytest.fixture(scope="module")
def many() -> Study:
    """Enough replicates to compare ways to split the voters, at epsilon 1."""
    return Study(80, (4, 1, 4))


def _errors(study: Study, split: str) -> np.ndarray:
    return study.scores(study.run(federation__split=split), "federated")


def _standard_errors(gain: np.ndarray) -> float:
    return float(gain.mean() / gain.std(ddof=1) * np.sqrt(len(gain)))


@pytest.mark.faults  # of two splits in many replicates
def test_splitting_clients_beats_splitting_the_budget(many: Study) -> None:
    """At epsilon 1, by more than 4 standard errors of the paired difference."""
    errors = {split: _errors(many, split) for split in ("clients", "budget")}
    gain = (errors["budget"] - errors["clients"])[:, GROUPS != 2].mean(axis=1)
    assert _standard_errors(gain) > 4
    assert 0.40 < errors["clients"][:, GROUPS == 2].mean() < 0.55


def test_opposite_servers_help() -> None:
    """The only server of its direction gains from six of the other (5 errors)."""
    clients = {"public": 0, "train": 120, "vote": 600, "test": 200}
    study = Study(30, (1, 0, 6), learner__name="logistic", epsilon=3.0, clients=clients)
    alone, joint = (_errors(study, split)[:, 0] for split in ("single", "clients"))
    assert _standard_errors(alone - joint) > 5
