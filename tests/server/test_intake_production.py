"""A release whose intake keeps sums: from its file of settings to the classifier."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.cli.commands import intake as command
from curvote.intake.box import Intake
from curvote.messages.message import (
    client_data,
    message_of,
    parse_messages,
    payload_at,
)
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.store.artifacts import artifact
from curvote.wire.envelope import Invitation, seal_message
from curvote.wire.key_tree import InvitationTree
from tests import plain
from tests.exchange import FAR, NAME, Server

N = 60
REAL = {k: v for k, v in FAR.items() if k not in {"train", "aggregate", "learners"}}
REAL |= {"protocol": "direct", "direct": {"arm": "joint"}, "clients": {"train": N}}
REAL |= {"project": {"basis": "bspline", "size": 4}}


def envelopes(server: Server, invited: list[Invitation]) -> list[bytes]:
    """Return what honest clients send, the same for each kind of intake."""
    with Intake(server.project.intake) as intake:
        task: Any = intake.rounds(NAME)[-1].task
    rng = np.random.default_rng(5)
    curves, labels = rng.normal(size=(N, 20)), rng.integers(2, size=N)
    drawn = message_of(task).draw(
        task, client_data(task, curves, labels), SeededEntropy(5)
    )
    return [seal_message(i, payload_at(drawn, k)) for k, i in enumerate(invited)]


def opened(root: Path, **intake: str) -> Server:
    """Return a server whose round was opened."""
    root.mkdir()
    server = Server(plain.write(root, **{NAME: REAL | {"intake": intake}}))
    server.run()
    return server


def classifier(server: Server) -> tuple[bytes, dict[str, Any]]:
    """Return the classifier's bytes, and the metadata of what it was made of."""
    _, record = server.run()
    keys = {step["stage"]: step["key"] for step in record.steps}
    rows = artifact(server.project, "aggregate", keys["aggregate"])
    columns = rows.columns("classifier", (0,))
    reports = artifact(server.project, "privatize", keys["privatize"])
    assert columns["n"].tolist() == [N]
    text = columns["coef"].tobytes() + np.asarray(columns["intercept"]).tobytes()
    return text, dict(reports.metadata)


def test_sums_and_trees_give_the_classifier_of_rows(tmp_path: Path) -> None:
    """By default sums; bit for bit the same, whoever carried the messages."""
    found = []
    for name, how in (
        ("sums", {}),
        ("rows", {"keep": "rows"}),
        ("tree", {"invitations": "tree"}),
    ):
        server = opened(tmp_path / name, **how)
        place = server.project.published(NAME)
        if name == "tree":
            path = place / "report-1.tree.json"
            done = CliRunner().invoke(command.app, ["invitations", str(path)])
            lines = done.stdout.splitlines()
            part = ["invitations", str(path), "--start", "9", "--count", "4", "--tree"]
            dealt = json.loads(CliRunner().invoke(command.app, part).stdout)
            second_dealt = [*InvitationTree.from_json(dealt)][1].to_json()
            assert second_dealt == json.loads(lines[10])
            assert not (place / "report-1.invitations.jsonl").exists()
            assert path.stat().st_mode & 0o077 == 0
        else:
            lines = (place / "report-1.invitations.jsonl").read_text().splitlines()
        invited = [Invitation.from_json(json.loads(line)) for line in lines]
        with Intake(server.project.intake) as intake:
            assert not any(
                intake.take_batch(envelopes(server, invited), parse_messages)
            )
        found.append(classifier(server))
    (sums, told), (rows, as_rows), (tree, _) = found
    assert sums == rows == tree
    assert told["keep"].startswith("sums direction ")
    assert as_rows["keep"] == "rows"
    assert {type(x) for row in told["sums"].values() for x in row} == {int}


def test_another_machines_intake_is_merged_by_command(tmp_path: Path) -> None:
    """It began as a copy; what it took in counts here, once."""
    server = opened(tmp_path / "here")
    lines = (server.published("report")[1]).read_text().splitlines()
    invited = [Invitation.from_json(json.loads(line)) for line in lines]
    copy = tmp_path / "there.sqlite"
    copy.write_bytes(server.project.intake.read_bytes())
    sent = envelopes(server, invited)
    for place, part in ((server.project.intake, sent[:40]), (copy, sent[40:])):
        with Intake(place) as intake:
            assert not any(intake.take_batch(part, parse_messages))
    words = ["merge", NAME, str(copy), "--project", str(server.project.root)]
    texts = [CliRunner().invoke(command.app, words).stdout for _ in range(2)]
    assert [text.rpartition(": ")[2].strip() for text in texts] == ["added 20", "known"]
    classifier(server)


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"intake": {"keep": "sums"}}, "needs each report"),
        ({"intake": {"keep": "sms"}}, "keep"),
    ],
)
def test_what_cannot_be_summed_is_said(
    tmp_path: Path, settings: dict[str, Any], where: str
) -> None:
    """MRMA trains on single reports."""
    project = plain.write(tmp_path, **{NAME: FAR | settings})
    with pytest.raises(UserError, match=where):
        PipelinesFile(project).configure_pipeline(NAME)
