"""What an outsider sees who trusts the shuffler: in the ledger, on the page."""

import html
import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from curvote.base.accounting import shuffled_epsilon
from curvote.base.privacy import Budget
from curvote.chain.registry import SYSTEMS
from curvote.cli.commands.ledger import app
from curvote.messages.amplification import OUTSIDER, ShuffledGuarantee, crowd_size
from curvote.messages.message import message_of, messages_of
from curvote.pipeline.config.project import Project
from curvote.report.page import load_page_data, render_report
from curvote.report.sentences import outsider_statement
from curvote.systems.mrma.messages import DirectionVote
from tests import online_round, plain, production
from tests.ledgers import filled
from tests.rounds import REPORTS
from tests.server.test_intake_sums import direct_task


def test_a_crowd_hides_and_a_lone_message_does_not() -> None:
    """With the delta that is stated; nothing for a local delta, nor for nobody."""
    told = ShuffledGuarantee.from_local(Budget(1), 5000)
    assert told == ShuffledGuarantee(5000, shuffled_epsilon(1, 5000, 1e-6), 1e-6)
    many = ShuffledGuarantee.from_local(Budget(1), 10**6)
    assert many is not None
    assert many.delta == pytest.approx(1e-7)
    assert ShuffledGuarantee.from_local(Budget(1, 1e-9), 5000) is None
    assert ShuffledGuarantee.from_local(Budget(1), 1) is None


def test_every_message_says_whether_it_is_shuffled() -> None:
    """One that is not hides among none; votes hide among those on the same one."""
    for name in SYSTEMS:
        for message in messages_of(name).values():
            if (
                message.per_table or message.per_record
            ):  # it says of which server, or record
                assert crowd_size(message, 120) == 0
                continue
            assert message.shuffled is True
            assert crowd_size(message, 120) == 120
            assert crowd_size(message, 120, 5) == 24

    class Tied(DirectionVote):
        shuffled = False

    assert crowd_size(Tied(), 120) == 0


@pytest.mark.parametrize("arm", ["joint", "one_of"])
def test_a_direction_hides_by_its_own_law(arm: str) -> None:
    """Better than whatever costs as much."""
    task = direct_task(arm)
    law = message_of(task).shuffled_law(task)
    told = ShuffledGuarantee.from_local(task.cost(), 5000, law)
    known = ShuffledGuarantee.from_local(task.cost(), 5000)
    assert told is not None
    assert known is not None
    assert told.epsilon < 0.95 * known.epsilon


def test_a_gaussian_report_hides_with_its_label() -> None:
    """It had no figure; its label alone costs so much, and a few hide nothing."""
    task = replace(REPORTS, epsilon=1.0, mechanism="gaussian", params={"delta": 1e-5})
    law = message_of(task).shuffled_law(task)
    assert law is not None
    assert law.pure == pytest.approx(1 / (task.encoding.d + 1))
    told = ShuffledGuarantee.from_local(task.cost(), 20_000, law)
    assert told is not None
    assert told.epsilon < 0.5
    assert ShuffledGuarantee.from_local(task.cost(), 20, law) is None
    laplace = replace(REPORTS, epsilon=1.0)
    assert message_of(laplace).shuffled_law(laplace) is None


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project whose one release is of 60 reports and 80 votes on 5."""
    project = production.write(tmp_path_factory.mktemp("outside"))
    plain.run(project, production.NAME)
    return project


def shown(project: Project, *words: str) -> str:
    """Return what `curvote ledger show` prints."""
    found = CliRunner().invoke(app, ["show", *words, "--project", str(project.root)])
    assert found.exit_code == 0, found.output
    return found.stdout


def test_the_ledger_shows_what_an_outsider_sees(released: Project) -> None:
    """Beside the local epsilon, with its delta and in words who that is."""
    rows = json.loads(shown(released, "--json"))
    told = {row["facts"]["message"]: row for row in rows}
    for name, n in (("report", 60), ("vote", 16)):
        own = told[name]["outside"]
        delta = min(1e-6, 1 / (10 * n))
        assert own == {
            "crowd": n,
            "epsilon": shuffled_epsilon(4, n, delta),
            "delta": delta,
        }
        assert own["epsilon"] <= told[name]["epsilon"] == 4
    text, epsilon = shown(released), told["report"]["outside"]["epsilon"]
    assert OUTSIDER in text
    assert f"{epsilon:.3g} (delta 1e-06)" in text


def test_a_release_of_before_is_shown_without_it(tmp_path: Path) -> None:
    """Nothing is guessed about a crowd that was not written down."""
    (tmp_path / "pipelines.yaml").touch()
    book = tmp_path / "ledger.sqlite"
    words = "--ledger", str(filled(book))
    rows = json.loads(shown(Project(tmp_path), *words, "--json"))
    assert {row["outside"] for row in rows} == {None}
    assert OUTSIDER not in shown(Project(tmp_path), *words)


@pytest.mark.usefixtures("blank_figures")
def test_the_page_of_a_release_says_it(released: Project) -> None:
    """Each message with its crowd; a study's page does not: its noise is no secret."""
    record = plain.run(released, production.NAME)
    data = load_page_data(released, record)
    assert {name: told.crowd for name, told in data.outside} == {
        "report": 60,
        "vote": 16,
    }
    said = outsider_statement(data)
    assert OUTSIDER in said
    assert "among 60" in said
    assert said in html.unescape(
        render_report(data, released.root / "page").read_text()
    )


def test_the_page_of_a_study_does_not(tmp_path: Path) -> None:
    """Whoever knows the seed removes the noise."""
    project = plain.write(tmp_path, tiny=plain.TINY | {"replicates": 1})
    data = load_page_data(project, plain.run(project))
    assert not data.outside
    assert not outsider_statement(data)


def test_votes_of_an_open_round_hide_nobody(tmp_path: Path) -> None:
    """Its batches can be told apart; its reports, all taken in at once, hide."""
    server = online_round.opened(tmp_path)
    sent = online_round.answers(server, "vote", seed=2)
    server.take(sent[: online_round.FIRST])
    _, record = server.run()
    alone = dict(load_page_data(server.project, record).outside)
    server.take(sent[online_round.FIRST : online_round.FIRST + online_round.FOLD])
    _, record = server.run()
    assert set(dict(load_page_data(server.project, record).outside)) == {"report"}
    counts = online_round.votes(server, record)["n"]
    assert alone["report"].crowd == 60
    assert "vote" not in alone or alone["vote"].crowd < counts.max()
