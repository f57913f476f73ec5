"""Protocol online on plain tables: a drop is seen, answered, and nothing is redone."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from curvote.base.errors import UserError
from curvote.chain.stage import Columns
from curvote.messages.roles import split_roles
from curvote.systems.common.study import TestClients as Judges
from curvote.systems.mrma.stages import ensemble_columns
from curvote.systems.online import stages
from curvote.systems.online.stages import INCUMBENT
from curvote.systems.online.system import SYSTEM
from tests import plain
from tests.memory import Made, Memory
from tests.online_study import (
    PARAMS,
    PERIODS,
    REPLICATES,
    SINCE,
    arrivals,
    clients,
    did,
    errors,
    histories,
)


# --------------------------------------------------------------------- with a turn
@pytest.mark.parametrize("memory", [1.0, 0.3])
def test_after_a_turn_online_beats_frozen(memory: float) -> None:
    """At the last arrival by 10 points at least, and by 5 standard errors."""
    gain = np.diff(errors(arrivals(90.0, memory)[-1]), axis=1)[:, 0]
    assert gain.mean() > 0.10
    assert gain.mean() > 5 * gain.std(ddof=1) / np.sqrt(REPLICATES)


def test_forgetting_follows_a_turn_sooner() -> None:
    """When the slope turns, old votes praise what is wrong now (5 std. errors)."""
    slow, quick = (errors(arrivals(90.0, m)[SINCE])[:, 0] for m in (1.0, 0.3))
    gain = slow - quick
    assert gain.mean() > 5 * gain.std(ddof=1) / np.sqrt(REPLICATES)


def test_a_turn_is_seen_and_answered_by_the_next_arrival() -> None:
    """The incumbent's drop is noticed at once; then, and only then, more are trained.

    Each replicate's chance to overlook a drop of 0.3 in 300 votes is below 1e-6.
    """
    for history in histories(arrivals(90.0)[-1]):
        assert history["dropped"][SINCE]
        assert history["utility"][SINCE] < history["utility"][SINCE - 1] - 0.1
        expected = np.zeros(PERIODS, dtype=int)
        expected[0] = PARAMS["train.count"]
        expected[1:] = np.where(history["dropped"][:-1], PARAMS["online.more"], 0)
        np.testing.assert_array_equal(history["added"], expected)


def test_added_candidates_carry_their_arrival() -> None:
    """And older candidates stay what they were, under their numbers."""
    made = arrivals(90.0)
    for r, new in enumerate(made[SINCE + 1]["learn"].each("candidates")):
        old = made[SINCE]["learn"].columns("candidates", (r,))
        for name in old:
            np.testing.assert_array_equal(new[name][: len(old["n"])], old[name])
        assert set(new["birth"][len(old["n"]) :]) == {SINCE + 1}
        np.testing.assert_array_equal(new["learner"], np.arange(len(new["n"])))


def test_added_candidates_learn_from_the_newest_reports() -> None:
    """Whatever stands in the reports of other arrivals makes no difference."""
    made = arrivals(90.0)[SINCE + 1]
    reports = made["privatize"].columns("arriving", (0,))
    newest = reports["arrival"] == SINCE + 1
    blank = reports | {"z": np.where(newest[:, None], reports["z"], 0.0)}
    inputs = made | {
        "privatize": Memory.of(made["privatize"].metadata, arriving=[blank])
    }
    found = did("learn", inputs, PARAMS | {"arrival": SINCE + 1}, places=[(0,)])
    own, expected = (m.columns("candidates", (0,)) for m in (found, made["learn"]))
    np.testing.assert_array_equal(own["coef"], expected["coef"])


@pytest.mark.parametrize(("row", "differs"), [(0, True), (1, False), (2, False)])
def test_one_incumbent_is_watched_until_classifiers_are_added(
    row: int, differs: bool
) -> None:
    """Of the history, the votes depend on the incumbent's row and on no other."""
    made = arrivals(90.0)[SINCE]
    history = histories(made)[0]
    known = {name: values[:SINCE].copy() for name, values in history.items()}
    known["coef"][row] *= -1
    known["intercept"][row] *= -1
    inputs = made | {"update@previous": Memory.of({}, history=[known])}
    found = did("evaluate", inputs, PARAMS | {"arrival": SINCE}, places=[(0,)])
    votes, before = (
        m.columns("arrival_votes", (0,)) for m in (found, made["evaluate"])
    )
    changed = votes["positive"] != before["positive"]
    assert changed[-1] == differs
    assert not changed[:-1].any()


# ------------------------------------------------------------------ without a turn
def test_without_a_turn_nothing_is_added() -> None:
    """False alarms stay within what their stated rate makes likely (1 - 1e-6)."""
    found = sum(h["dropped"].any() for h in histories(arrivals(0.0)[-1]))
    assert found <= binom.isf(1e-6, REPLICATES, PARAMS["online.error"])


def test_without_a_turn_utilities_are_known_ever_better() -> None:
    """Five times the votes: less than a third of the squared error."""
    first, last = (_squared_error(arrivals(0.0)[t]) for t in (0, PERIODS - 1))
    assert last < first / 3


def _squared_error(made: Made) -> float:
    """Return how far estimated utilities are from accuracies on all test clients."""
    found = []
    for r in range(REPLICATES):
        rows = made["project"].columns("encoded", (r,))
        mine = split_roles(PARAMS["seed"], r, len(rows["label"]), PARAMS["clients"])[
            "test"
        ]
        labels = np.where(rows["label"][mine] == 1, 1.0, -1.0)
        test = Judges(rows["coefficients"][mine], labels)
        up = made["learn"].columns("candidates", (r,))
        true = 1 - test.error(test.decisions(up["coef"], up["intercept"]))
        utility = made["update"].columns("standing", (r,))["utility"][-len(true) :]
        found.append(np.mean((utility - true) ** 2))
    return float(np.mean(found))


# ----------------------------------------------------------- incremental and batch
@pytest.mark.parametrize("turn", [0.0, 90.0])
def test_the_last_standing_is_the_batch_aggregate_of_all_votes(turn: float) -> None:
    """Stage aggregate of mrma, given the votes of all arrivals at once, to 1e-12."""
    made = arrivals(turn)
    for r, rows in enumerate(made[-1]["update"].each("standing")):
        newest = {k: v[rows["arrival"] == PERIODS - 1] for k, v in rows.items()}
        votes = [m["evaluate"].columns("arrival_votes", (r,)) for m in made]
        batch = ensemble_columns(_all_votes(votes), PARAMS["epsilon"], RULE)
        for name in ("utility", "standard_error", "reversed", "weight"):
            np.testing.assert_allclose(newest[name], batch[name], rtol=0, atol=1e-12)


RULE = {"cutoff": 0.8, "when_none_pass": "soft", "weights": "excess"}


def _all_votes(tables: list[Columns]) -> Columns:
    learner = np.concatenate([table["learner"] for table in tables])
    known = learner != INCUMBENT
    summed = {
        name: np.bincount(
            learner[known], np.concatenate([t[name] for t in tables])[known]
        ).astype(int)
        for name in ("n", "positive")
    }
    return {"learner": np.arange(len(summed["n"])), **summed}


def test_history_is_kept() -> None:
    """An arrival appends its rows to ``standing`` and ``history`` and alters none."""
    made = arrivals(90.0)
    for earlier, later in pairwise(made):
        for name in ("standing", "history"):
            old, new = (m["update"].columns(name, (0,)) for m in (earlier, later))
            for column, values in old.items():
                np.testing.assert_array_equal(new[column][: len(values)], values)


def test_every_voter_judges_one_classifier_once() -> None:
    """The votes of all arrivals are as many as there are evaluation clients."""
    tables = [m["evaluate"].columns("arrival_votes", (0,)) for m in arrivals(0.0)]
    assert sum(table["n"].sum() for table in tables) == PARAMS["clients"]["vote"]
    watched = [t["n"][t["learner"] == INCUMBENT].sum() for t in tables]
    assert watched[0] == 0
    for table, n in zip(tables[1:], watched[1:], strict=True):
        assert n == table["n"].sum() // stages.WATCH_INTERVAL
        assert np.ptp(table["n"][table["learner"] != INCUMBENT]) <= 1


@pytest.mark.parametrize("name", ["learn", "evaluate", "update", "report"])
def test_a_replicate_does_not_depend_on_its_block(name: str) -> None:
    """Alone or with others: the same bits, also where only some train more."""
    made, params = arrivals(90.0)[SINCE + 1], PARAMS | {"arrival": SINCE + 1}
    for place in ((0,), (5,)):
        found = did(name, made, params, places=[place])
        for table in found.tables:
            expected = made[name].columns(table, place)
            np.testing.assert_equal(found.columns(table, place), expected)


# ------------------------------------------------------------------------ refusals
def test_a_source_without_arrivals_is_refused() -> None:
    """Its groups mean something else, or it has too few arrivals."""
    encoded = clients(0.0)
    plain = Memory({k: v for k, v in encoded.metadata.items() if k != "periods"})
    made = arrivals(0.0)[0]
    with pytest.raises(UserError, match="source drifting"):
        did("evaluate", made | {"project": plain}, PARAMS | {"arrival": 0})
    beyond = PARAMS | {"arrival": PERIODS}
    with pytest.raises(UserError, match="arrival 6 was asked for"):
        did("evaluate", made, beyond)


def test_the_chain_declares_what_it_reads() -> None:
    """Every input is a stage before it, or of the arrival before."""
    known = {"project"}
    for stage in SYSTEM.stages:
        for name in stage.inputs:
            source, _, previous = name.partition("@")
            assert source in known or previous == "previous"
        known.add(stage.name)
    sent = SYSTEM.describe_messages({"privatize": PRIVATIZE}, 4)
    assert [one.epsilon for one in sent] == ["epsilon"] * 2


PRIVATIZE = {"mechanism": "laplace", "label_share": "equal"}


# ----------------------------------------------------------------------- the chain
SMALL = plain.TINY | {
    "protocol": "online",
    "source": {"name": "drifting", "points": 20, "periods": 3, "since": 1},
    "clients": {"train": 90, "vote": 240, "test": 60},
    "online": {"arrivals": 2, "memory": 0.5, "more": 5},
    "epsilon": [4],
    "learners": ["centroid"],
    "replicates": 2,
}


def test_a_later_run_computes_only_the_new_arrival(tmp_path: Path) -> None:
    """What it finds equals, file by file, a run of all arrivals from nothing."""
    project = plain.write(tmp_path / "grown", tiny=SMALL)
    plain.run(project)
    later = plain.plan(project, "tiny", "online.arrivals=3")
    fresh = {(step.stage.name, step.cell["arrival"]) for step in later.steps_to_run()}
    assert fresh == {(name, 2) for name in ("learn", "evaluate", "update", "report")}
    grown = plain.run(project, "tiny", "online.arrivals=3")
    empty = plain.write(tmp_path / "empty", tiny=SMALL)
    whole = plain.run(empty, "tiny", "online.arrivals=3", block=1)
    assert plain.hashes(project, grown) == plain.hashes(empty, whole)
