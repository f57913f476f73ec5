"""A round of votes that stays open: each run folds in what came since the last one."""

import json
from pathlib import Path
from random import Random

import numpy as np
import pytest
from typer.testing import CliRunner

from curvote.base.errors import UserError
from curvote.cli.commands import intake as cli_intake
from curvote.cli.commands import rehearsal
from curvote.intake.admission import RefusedEnvelope
from curvote.intake.box import Intake
from curvote.learning.votes import estimate_utility
from curvote.mechanisms.randomized_response import BinaryRR
from curvote.messages.message import parse_message
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.run.execution import execute_step
from curvote.pipeline.run.planner import Plan, make_plan
from curvote.pipeline.run.results import drift_alerts
from curvote.pipeline.store.artifacts import artifact
from tests import plain
from tests.damages import execute as execute_sql
from tests.exchange import NAME, Server
from tests.online_round import (
    FIRST,
    FOLD,
    ONLINE,
    VOTERS,
    answers,
    copied,
    ensemble,
    made,
    opened,
    verdicts,
    votes,
)
from tests.server.test_intake import contents


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Server:
    """Return a server that waits for votes; tests must not change it."""
    return opened(tmp_path_factory.mktemp("online"))


@pytest.fixture
def server(before: Server, tmp_path: Path) -> Server:
    """Return a copy of the server that waits for votes."""
    return copied(before, tmp_path / "server")


def reason(plan: Plan, stage: str = "evaluate") -> str:
    """Return why a stage is done or not."""
    return next(step.reason for step in plan.steps if step.stage.name == stage)


def actions(plan: Plan) -> set[str]:
    """Return what is done about all the steps."""
    return {step.action for step in plan.steps}


def test_three_batches_are_one(before: Server, tmp_path: Path) -> None:
    """Utilities and weights after each batch are those of all votes so far at once.

    Earlier results stay; reports and classifiers are made once.
    """
    sent, ends = answers(before, "vote", seed=2), (40, 75, VOTERS)
    online = copied(before, tmp_path / "online")
    records = []
    for start, end in zip((0, *ends), ends, strict=False):
        online.take(sent[start:end])
        plan, record = online.run()
        ran = {step.stage.name for step in plan.steps_to_run()}
        assert ran == {"evaluate", "aggregate"}
        records.append(record)
    for end, record in zip(ends, records, strict=True):
        once = copied(before, tmp_path / f"once-{end}")
        once.take(Random(end).sample(sent[:end], end))
        alone = ensemble(once, once.run()[1])
        ours = ensemble(online, record)
        for name, column in alone.items():
            np.testing.assert_allclose(ours[name], column, rtol=0, atol=1e-12)
        counted = votes(online, record)
        assert counted["n"].sum() == end
        told = estimate_utility(
            counted["positive"], counted["n"], BinaryRR(epsilon=4.0).keep
        )
        np.testing.assert_allclose(ours["utility"], told.value, rtol=0, atol=1e-12)
    sizes = [made(online, record, "evaluate").metadata["batches"] for record in records]
    assert sizes == [[40], [40, 35], [40, 35, 45]]


def test_without_news_a_run_changes_nothing(server: Server) -> None:
    """Too few votes for a batch are no news; they wait, and the plan counts them."""
    sent = answers(server, "vote", seed=2)
    server.take(sent[:FIRST])
    _, first = server.run()
    stored = contents(server.project.intake)
    plan, _ = server.run()
    assert actions(plan) == {"reuse"}
    assert reason(plan) == f"round open, {FIRST} votes used, 0 waiting"
    assert contents(server.project.intake) == stored
    server.take(sent[FIRST : FIRST + FOLD - 1])
    plan, again = server.run()
    assert actions(plan) == {"reuse"}
    assert f"{FOLD - 1} waiting" in reason(plan)
    assert plain.hashes(server.project, again) == plain.hashes(server.project, first)
    server.take(sent[FIRST + FOLD - 1 : FIRST + FOLD])
    assert votes(server, server.run()[1])["n"].sum() == FIRST + FOLD


def test_a_plan_folds_nothing(server: Server) -> None:
    """It says that a run would; only a run does."""
    server.take(answers(server, "vote", seed=2)[:FIRST])
    stored = contents(server.project.intake)
    configured = PipelinesFile(server.project).configure_pipeline(NAME)
    plan = make_plan(server.project, configured)
    assert {step.stage.name for step in plan.steps_to_run()} == {
        "evaluate",
        "aggregate",
    }
    assert reason(plan) == f"{FIRST} envelopes are in"
    assert contents(server.project.intake) == stored


def test_a_kill_between_fold_and_result_loses_nothing(
    before: Server, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run makes what the killed one would have; late votes wait."""
    sent = answers(server, "vote", seed=2)
    server.take(sent[:40])

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(rehearsal, "execute_step", dies)
        with pytest.raises(KeyboardInterrupt):
            server.run()
    server.take(sent[40 : 40 + FOLD - 1])
    plan, record = server.run()
    calm = copied(before, tmp_path / "calm")
    calm.take(sent[:40])
    _, other = calm.run()
    for read in (votes, ensemble):
        for name, column in read(calm, other).items():
            assert (read(server, record)[name] == column).all()
    assert not plan.blocked_steps()


def test_votes_of_a_later_batch_do_not_enter_an_earlier_result(server: Server) -> None:
    """Not even if another run folds them in between plan and computation."""
    sent = answers(server, "vote", seed=2)
    server.take(sent[:40])
    slow = server.plan()
    server.take(sent[40:80])
    server.run()
    (step,) = (s for s in slow.steps_to_run() if s.stage.name == "evaluate")
    execute_step(server.project, step)
    early = artifact(server.project, "evaluate", step.key)
    assert early.columns("votes", (0,))["n"].sum() == 40
    assert early.metadata["batches"] == [40]


def test_nobody_counts_twice_and_a_closed_round_takes_nothing(server: Server) -> None:
    """Closing folds in what waits, however few; then the round is as any other."""
    sent = answers(server, "vote", seed=2)
    server.take(sent[:FIRST])
    server.run()
    words = ["--project", str(server.project.root)]
    shown = CliRunner().invoke(cli_intake.app, ["show", NAME, "--json", *words])
    assert [row["state"] for row in json.loads(shown.stdout)] == [
        "closed",
        "complete, open",
    ]
    server.take(sent[FIRST : FIRST + 2])
    with Intake(server.project.intake) as intake:
        for data in (sent[0], sent[FIRST]):
            with pytest.raises(RefusedEnvelope, match="used before"):
                intake.take(data, parse_message)
        server.close()
        with pytest.raises(RefusedEnvelope, match="closed"):
            intake.take(sent[FIRST + 2], parse_message)
    _, record = server.run()
    assert votes(server, record)["n"].sum() == FIRST + 2
    plan, _ = server.run()
    assert actions(plan) == {"reuse"}
    assert reason(plan) == reason(plan, "privatize") == "round closed"


def test_a_lost_set_is_not_replaced_by_another(server: Server) -> None:
    """Votes that were folded in and are gone stop the run; nothing else is used."""
    server.take(answers(server, "vote", seed=2)[:FIRST])
    plan = server.plan()
    execute_sql("DELETE FROM sums WHERE batch = 1")(server.project.intake)
    (step,) = (s for s in plan.steps_to_run() if s.stage.name == "evaluate")
    with pytest.raises(UserError, match="latest backup"):
        execute_step(server.project, step)


def test_a_run_says_when_the_newest_votes_are_worse(server: Server) -> None:
    """And says nothing as long as voters go on saying the same."""
    good, bad = (verdicts(server, right=right) for right in (True, False))
    told = []
    for batch in (good[:40], good[40:80], bad[80:]):
        server.take(batch)
        _, record = server.run()
        told.append(drift_alerts(server.project, record))
    assert told[:2] == [[], []]
    (line,) = told[2]
    assert "the newer of 120 votes find the classifiers worse" in line
    assert reason(server.plan()).endswith("the newest are worse")


@pytest.mark.parametrize(
    ("intake", "said"),
    [
        ({"online": True}, "no 50 votes can follow: 120 are invited"),
        ({"online": True, "min_votes": 49}, "49 votes are too few to begin with"),
        ({"online": True, "min_votes": 71}, "waits for 71; state a lower min_votes"),
        ({"online": True, "min_votes": 60, "fold": 1}, "must be 2 or more"),
        ({"online": True, "min_votes": 70}, None),
    ],
)
def test_batches_must_be_able_to_come(
    tmp_path: Path, intake: dict[str, object], said: str | None
) -> None:
    """A first one that is large enough, and another one after it."""
    project = plain.write(tmp_path, **{NAME: ONLINE | {"intake": intake}})
    file = PipelinesFile(project)
    if said is None:
        assert file.configure_pipeline(NAME).pipeline.intake
        return
    with pytest.raises(UserError, match=said):
        file.configure_pipeline(NAME)


def test_too_few_for_a_first_batch_wait(server: Server) -> None:
    """Where the round was opened for fewer votes than a batch has by now."""
    more = {"min_votes": 60, "online": True, "fold": 60}
    plain.write(server.project.root, **{NAME: ONLINE | {"intake": more}})
    sent = answers(server, "vote", seed=2)
    server.take(sent[:FIRST])
    plan, _ = server.run()
    assert reason(plan) == f"waits for votes: {FIRST} of 60 to begin with"
    assert "blocked" in actions(plan)
    server.take(sent[FIRST:60])
    assert votes(server, server.run()[1])["n"].sum() == 60
