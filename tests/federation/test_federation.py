"""Many servers: who judges what, who is reversed, and servers that answer badly."""

from __future__ import annotations

import numpy as np
import pytest

from curvote.chain.stage import StageContext
from curvote.pipeline.store.arrow import to_arrow
from curvote.systems.federated import stages
from curvote.systems.federated.stages import FAULTS
from curvote.systems.federated.system import SYSTEM
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
