"""`intake take`, killed at any moment: every envelope counts once, none is lost."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from curvote.intake.box import Intake
from curvote.wire.envelope import issue_invitations, seal_message
from tests.rounds import REPORTS, payload, quiet

N = 400
TAKE = """
import sys
from pathlib import Path
from curvote.messages.message import parse_messages
from curvote.intake import inbox
from curvote.intake.box import Intake

inbox.BATCH = 7
root = Path(sys.argv[1])
print("ready", flush=True)
with Intake(root / "intake.sqlite") as intake:
    taken = inbox.accept_inbox(intake, root / "inbox", root / "kept", parse_messages)
    print(taken.accepted)
"""


@pytest.mark.faults
def test_no_kill_loses_an_envelope_or_counts_one_twice(tmp_path: Path) -> None:
    """Whatever was deleted was accepted; nothing is set aside."""
    invited, folder = issue_invitations(REPORTS, N), tmp_path / "inbox"
    folder.mkdir()
    sent = [seal_message(i, payload(REPORTS, i, k)) for k, i in enumerate(invited)]
    for k, data in enumerate(sent[: N // 2]):
        (folder / f"{k}.json").write_bytes(data)
    (folder / "many.jsonl").write_bytes(b"".join(sent[N // 2 :]))
    quiet(folder / "many.jsonl")
    with Intake(tmp_path / "intake.sqlite") as intake:
        given = {"pipeline": "p", "needed": 1, "invitations": invited}
        intake.open_round("one", task=REPORTS, **given)
    rng, kills = random.Random(1), 0
    while killed(tmp_path, rng.uniform(0, 0.02 * (1 + kills / 5))):
        kills += 1
        with Intake(tmp_path / "intake.sqlite") as intake:
            accepted = intake.round("one").accepted
        left = len([*folder.glob("*.json")])
        assert accepted >= N // 2 - left
    assert kills > 3
    with Intake(tmp_path / "intake.sqlite") as intake:
        assert intake.round("one").accepted == N
    assert list(folder.iterdir()) == []
    assert not (tmp_path / "kept").exists()


def killed(root: Path, after: float) -> bool:
    """Take all in, in another process; say whether the kill came before its end."""
    command = [sys.executable, "-c", TAKE, str(root)]
    taking = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path.cwd())
    with taking:
        assert taking.stdout is not None
        taking.stdout.readline()
        time.sleep(after)
        done = taking.poll() is not None
        taking.kill()
    return not done
