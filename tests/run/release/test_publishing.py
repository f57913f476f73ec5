"""What a server publishes: signed tasks of clients elsewhere, and nothing of others."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from curvote.base.errors import UserError
from curvote.cli.commands import intake as cli_intake
from curvote.intake.admission import RefusedEnvelope
from curvote.intake.box import Intake
from curvote.pipeline.config.project import Project
from curvote.pipeline.release.publication import publish_rounds, server_key
from curvote.pipeline.store.artifacts import artifact
from curvote.wire import envelope, signing
from curvote.wire.envelope import Invitation, seal_message
from tests import exchange, online_round, plain, production
from tests.exchange import FAR, NAME, Server
from tests.federation.test_exchange import some_clients


def stored(project: Project) -> dict[str, bytes]:
    """Return every file of a project but the caches of SQLite."""
    data = project.root / "data"
    return {str(p): p.read_bytes() for p in data.rglob("*") if p.is_file()}


def _lose_the_ledger(project: Project, made: Any) -> None:
    project.ledger.unlink()


def _alter_the_table(project: Project, made: Any) -> None:
    step = production.releases(made)[0]
    folder = artifact(project, step.stage.name, step.key).path
    (table,) = folder.glob("*.parquet")
    table.write_bytes(table.read_bytes()[:-1])


@pytest.mark.parametrize("damage", [_lose_the_ledger, _alter_the_table])
def test_a_blocked_local_release_publishes_nothing(tmp_path: Path, damage: Any) -> None:
    """No task, no invitation, no round: its clients would be asked a second time."""
    project = production.write(tmp_path)
    made = production.run(project)
    damage(project, made)
    # As a plan says it, where nothing refuses to plan at all.
    steps = [replace(s, action="blocked") if s.release else s for s in made.steps]
    before = stored(project)
    assert list(publish_rounds(project, made.configured, tuple(steps))) == []
    assert stored(project) == before
    assert not project.published(production.NAME).exists()
    assert not project.intake.exists()


@pytest.fixture
def server(tmp_path: Path) -> Server:
    """Return a server that has opened its first round."""
    made = Server(plain.write(tmp_path / "server", **{NAME: FAR}))
    made.run()
    return made


def test_tasks_are_signed_and_invitations_name_the_signer(server: Server) -> None:
    """Who replaces either on the way is not the server that the other one names."""
    task, secret = server.published("report")
    invited = [
        Invitation.from_json(json.loads(x)) for x in secret.read_text().splitlines()
    ]
    found = signing.open_signed(task.read_bytes())
    words = ["key", "--project", str(server.project.root)]
    told = CliRunner().invoke(cli_intake.app, words).stdout.strip()
    assert {i.signer for i in invited} == {found.fingerprint} == {told}
    assert {i.format for i in invited} == {2}
    assert found.document["seal_to"] is None
    assert server_key(server.project).fingerprint == told


@pytest.mark.parametrize("kind", ["unsigned", "altered", "missing"])
def test_an_open_round_is_signed_again(server: Server, kind: str) -> None:
    """Of an earlier version, or altered in its place: the same task, the same names."""
    task, secret = server.published("report")
    good, invited = task.read_bytes(), secret.read_bytes()
    document = signing.open_signed(good).document
    if kind == "unsigned":
        task.write_text(json.dumps(document["task"], indent=1))
    elif kind == "altered":
        task.write_bytes(good.replace(b"A", b"B", 1))
    else:
        task.unlink()
    server.run()
    assert (task.read_bytes(), secret.read_bytes()) == (good, invited)
    plan = server.plan()
    assert list(publish_rounds(server.project, plan.configured, plan.steps)) == []


def test_a_round_that_stays_open_is_signed_again(tmp_path: Path) -> None:
    """Though nothing blocks the run any more."""
    made = online_round.opened(tmp_path)
    made.take(online_round.answers(made, "vote", seed=2)[: online_round.FIRST])
    made.run()
    task, _ = made.published("vote")
    good = task.read_bytes()
    task.write_text("{}")
    plan, _ = made.run()
    assert not plan.blocked_steps()
    assert task.read_bytes() == good


def test_a_key_that_others_can_read_publishes_nothing(tmp_path: Path) -> None:
    """Nor does one that is lost."""
    server = Server(plain.write(tmp_path / "server", **{NAME: FAR}))
    key = server.project.state / "server.key"
    server_key(server.project)
    key.chmod(0o644)
    with pytest.raises(UserError, match="others may read it"):
        server.run()
    key.unlink()
    with pytest.raises(UserError, match="it is missing"):
        server.run()
    assert [*server.project.published(NAME).iterdir()] == []
    assert not server.project.intake.exists()


# ------------------------------------------------------------------------- sealed
SEALED = FAR | {"intake": {"sealed": True}}


def test_sealed_envelopes_travel_the_whole_way(tmp_path: Path) -> None:
    """The carrier sees equal sizes and the round's key; the server counts the same."""
    server = Server(plain.write(tmp_path / "server", **{NAME: SEALED}))
    server.run()
    task, secret = server.published("report")
    sent = exchange.answers(server, "report", *some_clients(60, 1), tmp_path / "first")
    assert len({len(data) for data in sent}) == 1
    for line, data in zip(secret.read_text().splitlines(), sent, strict=True):
        invitation = Invitation.from_json(json.loads(line))
        assert envelope.is_sealed(data)
        assert not any(each.encode() in data for each in (invitation.id, "label"))
    seal_to = signing.open_signed(task.read_bytes()).document["seal_to"]
    assert invitation.seal_to == seal_to
    unsealed = seal_message(
        replace(invitation, seal_to=None), {"z": [0.5] * 4, "label": 1}
    )
    with pytest.raises(RefusedEnvelope, match="sealed to its own key"):
        server.take([unsealed])
    server.take(sent)
    plan, _ = server.run()
    assert plan.blocked_steps()[0].reason == "waits for votes: 0 of 80"
    other, _ = server.published("vote")
    assert signing.open_signed(other.read_bytes()).document["seal_to"] not in (
        None,
        seal_to,
    )


def test_sealing_renames_no_release(tmp_path: Path) -> None:
    """Nor does it reach a round that is open: its clients know what to seal to."""
    server = Server(plain.write(tmp_path / "server", **{NAME: FAR}))
    server.run()
    with Intake(server.project.intake) as intake:
        before = [r.id for r in intake.rounds()]
    task, _ = server.published("report")
    good = task.read_bytes()
    for change in (SEALED, FAR):
        plain.write(server.project.root, **{NAME: change})
        plan, _ = server.run()
        assert [s.release.id for s in plan.steps if s.release][:1] == before
        assert task.read_bytes() == good
    with Intake(server.project.intake) as intake:
        assert [r.id for r in intake.rounds()] == before


def test_a_kill_before_a_sealed_round_is_open_leaves_no_dead_invitation(
    tmp_path: Path,
) -> None:
    """Those that were written down name a key that nobody has: new ones are issued."""
    server = Server(plain.write(tmp_path / "server", **{NAME: SEALED}))
    server.run()
    task, secret = server.published("report")
    before = secret.read_bytes()
    for file in [task, *server.project.state.glob("intake.sqlite*")]:
        file.unlink()
    server.run()
    assert secret.read_bytes() != before
    named = {json.loads(line)["seal_to"] for line in secret.read_text().splitlines()}
    assert named == {signing.open_signed(task.read_bytes()).document["seal_to"]}


def test_a_kill_before_the_task_is_written_loses_no_key(tmp_path: Path) -> None:
    """What is published is what the round was opened with."""
    server = Server(plain.write(tmp_path / "server", **{NAME: SEALED}))
    server.run()
    task, _ = server.published("report")
    good = task.read_bytes()
    task.unlink()
    (opened,) = publish_rounds(
        server.project, server.plan().configured, server.plan().steps
    )
    assert opened.task.read_bytes() == good


def test_what_is_missing_for_an_intake_is_said_once(tmp_path: Path) -> None:
    """By what to write; a ledger of the project would be the wrong advice."""
    without = {name: own for name, own in FAR.items() if name != "intake"}
    project = plain.write(tmp_path, **{NAME: without})
    with pytest.raises(UserError, match=r"write intake: \{\}") as found:
        plain.plan(project, NAME)
    assert "ledger" not in str(found.value)
    project = plain.write(
        tmp_path, **{NAME: without | {"ledger": production.REAL["ledger"]}}
    )
    with pytest.raises(UserError, match="take `ledger` out"):
        plain.plan(project, NAME)
