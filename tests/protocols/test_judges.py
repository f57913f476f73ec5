"""Judges of a release: who they are, what they send, and what is said of it."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from curvote.base.errors import UserError
from curvote.chain.axis import Cell
from curvote.chain.lookup import all_systems
from curvote.flows.tracking import cells
from curvote.learning.intervals import binomial_interval
from curvote.learning.votes import judged_accuracy
from curvote.ledger.book import Ledger
from curvote.messages.roles import split_roles
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.schema import pipeline_of
from curvote.pipeline.release import evidence
from curvote.pipeline.release import production as session
from curvote.pipeline.run import results
from curvote.pipeline.run.champion import score_model
from curvote.pipeline.store.artifacts import artifact
from curvote.pipeline.store.records import RunRecord
from curvote.report.page import draw_report
from curvote.systems.direct.system import choose_protocol, epsilon_choices
from tests import exchange, hospitals, plain, production
from tests.pins.test_releases import PIPELINES, STANDARD, THREE
from tests.processes import in_child

JUDGED = [system.name for system in all_systems() if system.judging]
LOUD = {"epsilon": 30, "ledger": {"per_client": {"epsilon": 30}}, "judges": "30 %"}


def judged_run(
    root: Path, given: dict[str, Any], **changes: Any
) -> tuple[Project, RunRecord, Cell, dict[str, float]]:
    """Run a pipeline whose records are here; return its one cell and what is known."""
    project = plain.write(root, **{production.NAME: given | changes})
    record = plain.run(project, production.NAME)
    ((cell, outcome),) = results.production_outcomes(project, record).items()
    return project, record, cell, outcome


def true_accuracy(project: Project, record: RunRecord, cell: Cell) -> float:
    """Return for which share of its judges the model that is kept is right."""
    (view,) = results.final_views(project, record)
    clients, settings = view.columns("ingest", "clients"), view.settings
    sizes, n = settings.clients.model_dump(), len(clients["label"])
    rows = split_roles(settings.seed, 0, n, sizes)["judge"]
    classes = np.array(view.metadata("project")["classes"])
    predictions = results.final_model(project, record, cell).predict(
        clients["curve"][rows]
    )
    return float(np.mean(predictions == classes[clients["label"][rows]]))


THREE_CLASSES = THREE | {"project": {"basis": "identity", "rescale": "standard"}}
RELEASES: list[tuple[str, dict[str, Any]]] = [
    *((f"{name} here usual", {}) for name in JUDGED if name != "direct"),
    ("direct here joint", {}),
    ("pilot here usual", {"seed": 2}),  # the table is taken
    *((f"{n} here usual", THREE_CLASSES) for n in ("counts", "votes", "majority")),
    ("direct here joint", THREE_CLASSES),
]


@pytest.mark.parametrize(("name", "changes"), RELEASES)
def test_without_noise_judges_know_the_model_that_is_kept(
    name: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    """Of every system: the question is about the very classifier that is released."""
    given = PIPELINES[name] | LOUD
    project, record, cell, outcome = judged_run(tmp_path, given, **changes)
    assert outcome["accuracy"] == pytest.approx(true_accuracy(project, record, cell))
    assert outcome["accuracy_low"] < outcome["accuracy"] < outcome["accuracy_high"]


def real(**changes: Any) -> dict[str, Any]:
    """Return a small release of `direct` with judges."""
    own = {"protocol": "direct", "direct": {"arm": "mean"}, "project": STANDARD}
    own |= {"judges": 0.1} | changes
    return production.changed(production.REAL, **own)


def test_judges_are_the_last_and_send_one_bit(tmp_path: Path) -> None:
    """Who is there stays there, each is charged once, and a repetition is the same."""
    project = plain.write(tmp_path, **{production.NAME: real()})
    made = production.run(project)
    before = production.bytes_of(project, made), production.confirmed(project)
    judged, alone = (
        split_roles(7, 0, 140, {"train": 60, "vote": 80} | more)
        for more in ({"train": 54, "vote": 72, "judge": 14}, {})
    )
    assert [entry.n_clients for entry in before[1]] == [126, 14]
    with Ledger(project.ledger) as ledger:
        report, judge = (set(ledger.members(e.release).tolist()) for e in before[1])
    assert judge == {*map(str, judged["judge"])}
    assert report.isdisjoint(judge)
    everybody = np.concatenate([alone["vote"], alone["train"]])
    assert np.array_equal(judged["judge"], everybody[-14:])  # the last in public order
    assert report | judge == {*map(str, everybody)}
    (table,) = {s.stage.name: s for s in made.steps}["judge"].stage.tables
    step = next(s for s in made.steps if s.stage.name == "judge")
    columns = artifact(project, "judge", step.key).columns(table.name, (0,))
    assert {name: len(values) for name, values in columns.items()} == {
        "learner": 1,
        "n": 1,
        "positive": 1,
    }
    assert {step.action for step in production.run(project).steps} == {"reuse"}
    with pytest.raises(UserError, match="no room"):
        production.run(project, new_release=True)
    again = production.plan(project)
    assert (
        production.bytes_of(project, again),
        production.confirmed(project),
    ) == before
    # Another share is another cohort of the same people, who have nothing left.
    plain.write(tmp_path, **{production.NAME: real(judges=0.2)})
    with pytest.raises(UserError, match="no room"):
        production.run(project)
    assert production.confirmed(project) == before[1]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("where", ["_reserve_release", "_confirm_release"])
def test_a_kill_while_judges_answer_is_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, after: bool
) -> None:
    """The report stays as it was, and each judge is charged once."""
    project = plain.write(tmp_path, **{production.NAME: real()})
    step, calls = getattr(session, where), []

    def dies(*given: object) -> None:
        calls.append(given)
        if len(calls) == 1 or after:
            step(*given)
        if len(calls) == 2:  # the judges'
            os._exit(9)

    with monkeypatch.context() as patch:
        patch.setattr(session, where, dies)
        os.waitpid(in_child(lambda: production.run(project)), 0)
    before = production.bytes_of(project, production.plan(project))
    made = production.run(project)
    assert before.items() <= production.bytes_of(project, made).items()
    assert [entry.n_clients for entry in production.confirmed(project)] == [126, 14]
    assert evidence.ledger_problems(project) == []


def test_every_count_is_of_those_who_remain() -> None:
    """The rule of `auto`, sizes, what is asked for, and roles of one kind alone."""
    settings = pipeline_of(real(protocol="auto", clients={"train": 600}, judges="10 %"))
    assert settings.clients.model_dump() == {
        "public": 0,
        "train": 540,
        "vote": 0,
        "test": 0,
        "judge": 60,
    }
    ((_, choice),) = epsilon_choices(settings)
    d = 4
    assert choice == choose_protocol(540, d, 4)
    assert pipeline_of(settings.model_dump()) == settings  # a record is read so
    unjudged = pipeline_of(real(judges=None)).model_dump()
    assert "judge" not in unjudged["clients"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"judges": 10}, "must be 0.5 or less"),
        ({"judges": "60 %"}, "must be 0.5 or less"),
        ({"judges": "a tenth"}, "must be a number"),
        ({"judges": 0}, "must be above 0"),
        ({"judges": 1e-3}, "leave nobody to judge"),
        ({"mode": "study", "ledger": None}, "a study knows its accuracy"),
        ({"clients": {"train": 60, "judge": 20}}, "follows from `judges`"),
        ({"judges": None, "clients": {"train": 60, "judge": 7}}, "follows from"),
        ({"protocol": "labels", "source": {"name": "circle"}}, "no task can show"),
    ],
)
def test_what_cannot_be_judged_is_refused(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    """In words, before anybody is asked."""
    plain.write(tmp_path, **{production.NAME: real(**changes)})
    with pytest.raises(UserError, match=words):
        PipelinesFile(Project(tmp_path)).configure_pipeline(production.NAME)


def test_hospitals_and_open_rounds_are_refused(tmp_path: Path) -> None:
    """No patient is asked anything; a classifier that moves on has no judges."""
    online = {"intake": {"online": True, "min_votes": 10, "fold": 2}, "judges": 0.1}
    for given, words in (
        (hospitals.REMOTE | {"judges": 0.1}, "no task can show the classifier of"),
        (exchange.FAR | online, "changes while the round stays open"),
        (exchange.FAR | {"judges": 0.1, "intake": {"min_judgements": 15}}, "only 14"),
    ):
        plain.write(tmp_path, far=given)
        with pytest.raises(UserError, match=words):
            PipelinesFile(Project(tmp_path)).configure_pipeline("far")


def test_judges_answer_by_envelope(tmp_path: Path) -> None:
    """Their round comes last, waits for its own number, and says the same."""
    own = {"protocol": "direct", "direct": {"arm": "mean"}, "judges": "30 %"}
    own |= {"project": STANDARD, "epsilon": 30, "intake": {"min_judgements": 20}}
    given = production.changed(exchange.FAR, **own)
    server = exchange.Server(plain.write(tmp_path / "far", **{exchange.NAME: given}))
    rng = np.random.default_rng(1)
    for asks, n in (("report", 98), ("judgement", 20)):
        blocked = server.run()[0].blocked_steps()
        assert blocked[0].reason == f"waits for {asks}s: 0 of {n}"
        labels = rng.integers(0, 2, n)
        curves = rng.normal(size=(n, 20)) + labels[:, None] - 0.5
        server.take(exchange.answers(server, asks, curves, labels, tmp_path / asks))
    record = server.run()[1]
    ((cell, outcome),) = results.production_outcomes(server.project, record).items()
    model = results.final_model(server.project, record, cell)
    right = model.predict(curves) == np.array(["-1", "+1"])[labels]
    assert outcome["accuracy"] == pytest.approx(right.mean())
    assert (outcome["judges"], outcome["reports"]) == (20, 98)


def test_page_and_tracking_state_the_accuracy(tmp_path: Path) -> None:
    """With its interval; the headline of both is what the judges say."""
    project, record, cell, outcome = judged_run(tmp_path, real())
    page = draw_report(project, record).read_text()
    low, high = (100 * outcome[f"accuracy_{end}"] for end in ("low", "high"))
    ends = f"{low:.1f} to {high:.1f}"
    assert f"right for {100 * outcome['accuracy']:.1f} %" in page
    assert f"95 % interval: {ends} %" in page
    assert "No true error is known" not in page
    words = cells.format_outcome(outcome)
    assert words["accuracy"] == f"{100 * outcome['accuracy']:.1f} % ({ends})"
    assert {*words} == {"accuracy", "judges", "reports"}
    headline = cells.outcomes_headline(
        {cell: outcome}, cells.parts_by_cell(record, [cell])
    )
    assert headline.title.startswith("accuracy 0.")
    assert {"accuracy", "accuracy_low", "accuracy_high"} <= {*headline.metric_names}
    score = score_model(project, record, cell)
    assert (score.value, score.tries) == (outcome["accuracy"], 1)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("n", [1, 10, 60])
def test_the_interval_covers_at_every_accuracy(n: int, epsilon: float) -> None:
    """By the exact law of the noised bits; the bare rate's interval would not."""
    q, counts = 1 / (1 + np.exp(-epsilon)), np.arange(n + 1)
    ends = np.array([judged_accuracy(int(k), n, q)[2:] for k in counts])
    bare = np.array([binomial_interval(k, n, 0.95) for k in counts])
    for accuracy in np.linspace(0, 1, 21):
        law = binom.pmf(counts, n, q * accuracy + (1 - q) * (1 - accuracy))
        assert law[(ends[:, 0] <= accuracy) & (accuracy <= ends[:, 1])].sum() >= 0.95
    law = binom.pmf(counts, n, q)  # of a classifier that is always right
    assert n < 60 or law[bare[:, 1] >= 1].sum() < 0.95
