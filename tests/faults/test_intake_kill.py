"""`intake take`, killed at any moment: every envelope counts once, none is lost."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from curvote.intake.box import Intake
from curvote.learning.sums import MessageSums
from curvote.messages.message import message_of, parse_messages
from curvote.wire.envelope import issue_invitations, seal_message
from curvote.wire.key_tree import InvitationTree
from tests.rounds import REPORTS, payload, quiet
from tests.server.test_intake_sums import answers, direct_task

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


@pytest.mark.faults
def test_no_kill_parts_the_sums_from_those_who_sent_them(tmp_path: Path) -> None:
    """200 kills: what is summed is what the used places sent, no more and no less.

    Whoever takes in is a fork, killed by the system: it tidies nothing up.
    """
    task, path, n = direct_task("joint"), tmp_path / "intake.sqlite", 3000
    tree, sent = InvitationTree.grow(task, n), answers(task, n)
    data = [seal_message(tree.invitation(k), each) for k, each in enumerate(sent)]
    form = message_of(task).sum_form(task)
    with Intake(path) as intake:
        given = {"pipeline": "p", "needed": 1, "invitations": tree}
        intake.open_round("one", task=task, keep=str(form), **given)
    rng, done = random.Random(2), 0
    for _ in range(200):
        child = os.fork()
        if not child:
            with Intake(path) as intake:
                for _ in range(n):
                    start = rng.randrange(n - 5)
                    intake.take_batch(data[start : start + 5], parse_messages)
            os._exit(0)
        time.sleep(rng.uniform(0, 0.04))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with Intake(path) as intake:
            marks = intake._base.rows("SELECT block, bits FROM marks")
            states = intake._base.rows("SELECT state FROM sums")
        used = [
            4096 * block + k
            for block, bits in marks
            for k in range(8 * len(bits))
            if bits[k // 8] >> k % 8 & 1
        ]
        expected, found = MessageSums(form), MessageSums(form)
        expected.add(sent[k] for k in used)
        for (text,) in states:
            found.merge(MessageSums.from_text(form, text))
        assert found.to_text() == expected.to_text()
        assert len(used) >= done
        done = len(used)
    assert done > 200
    with Intake(path) as intake:
        intake.take_batch(data, parse_messages)
        (state,) = intake.batches("one", intake.close("one")).values()
    expected = MessageSums(form)
    expected.add(sent)
    assert state.to_text() == expected.to_text()
