"""An intake that is gone, or another one: no round is begun anew under its task."""

from pathlib import Path

import pytest

from curvote.base.errors import UserError
from tests import plain
from tests.exchange import FAR, NAME, Server


def test_a_missing_intake_is_not_replaced_by_an_empty_one(tmp_path: Path) -> None:
    """An empty one would take every used invitation again; its backup goes on."""
    server = Server(plain.write(tmp_path, **{NAME: FAR}))
    server.run()
    kept = {p: p.read_bytes() for p in server.published("report")}
    intake = server.project.intake.read_bytes()
    server.project.intake.unlink()
    for _ in range(2):
        with pytest.raises(UserError, match="latest backup") as caught:
            server.run()
        assert "Only if it is lost for good" in str(caught.value)
    assert {p: p.read_bytes() for p in server.published("report")} == kept
    for journal in server.project.state.glob("intake.sqlite*"):
        journal.unlink()
    server.project.intake.write_bytes(intake)
    plan, _ = server.run()
    assert plan.blocked_steps()[0].reason == "waits for reports: 0 of 60"


def test_whoever_gives_up_a_round_may_begin_another(tmp_path: Path) -> None:
    """What was published is deleted by hand; then all are asked again."""
    server = Server(plain.write(tmp_path, **{NAME: FAR}))
    server.run()
    (task, invitations) = server.published("report")
    before = invitations.read_bytes()
    server.project.intake.unlink()
    task.unlink()
    invitations.unlink()
    server.run()
    assert server.published("report")[1].read_bytes() != before
