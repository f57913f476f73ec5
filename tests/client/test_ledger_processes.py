"""The ledger among processes: caps hold together, a kill leaves it sound."""

import multiprocessing
import os
import random
import shutil
import signal
import time
from functools import partial
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np

from curvote.base.privacy import Budget
from curvote.ledger.book import Ledger
from tests.ledgers import ONE, refusal, reserve, says
from tests.processes import in_child

FORK = multiprocessing.get_context("fork")


def _crowd(path: Path, me: int, together: Barrier) -> None:
    """Reserve overlapping cohorts until nobody has room; all of it must stay."""
    rng = np.random.default_rng(me)
    together.wait()
    with Ledger(path) as ledger:
        for i in range(12):
            name, ids = f"{me}-{i}", rng.permutation(40)[:30]
            message = refusal(partial(reserve, ledger, name, ids))
            if message is None:
                ledger.confirm(name, place="x", digest="y")
            else:
                assert "no room" in message
        own = [e for e in ledger.entries() if e.release.startswith(f"{me}-")]
    together.wait()
    with Ledger(path) as ledger:
        assert [ledger.entry(e.release) for e in own] == own


def test_processes_together_never_exceed_the_cap(tmp_path: Path) -> None:
    """Four of them create one ledger at once and fill every client to the brim."""
    path = tmp_path / "new" / "ledger.sqlite"
    together = FORK.Barrier(4)
    crowd = [in_child(partial(_crowd, path, me, together)) for me in range(4)]
    assert [os.waitpid(child, 0)[1] for child in crowd] == [0] * 4
    entries, sums, problems = says(path)
    assert problems == []
    assert max(epsilon for _, epsilon, _ in sums) == ONE.epsilon
    assert max(delta for _, _, delta in sums) <= ONE.delta
    assert 10 <= len(entries) < 48
    assert [f.name for f in path.parent.iterdir()] == [path.name]


def _busy(path: Path) -> None:
    """Do all kinds of things until killed."""
    rng = random.Random(os.getpid())
    with Ledger(path) as ledger:
        for i in range(10**6):
            name = f"{os.getpid()}-{i}"
            budget = Budget(rng.choice([1e-5, 2e-5]))
            reserve(ledger, name, np.arange(rng.randrange(1, 300)), budget)
            how = rng.choice(["confirm", "cancel", "spend"])
            if how == "confirm":
                ledger.confirm(name, place="x", digest="y")
            elif how == "cancel":
                ledger.cancel(name)
            else:
                ledger.mark_spent(name, "?")


def test_a_killed_process_leaves_a_sound_ledger(tmp_path: Path) -> None:
    """Twenty kills, some while the file is created; what was confirmed stays."""
    path, rng, known = tmp_path / "ledger.sqlite", random.Random(3), 0
    for _ in range(20):
        victim = in_child(partial(_busy, path))
        time.sleep(rng.choice([0.003, 0.01, 0.1]) * rng.random())
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
        with Ledger(path) as ledger:
            assert ledger.problems() == []
            assert len(ledger.entries()) >= known
            known = len(ledger.entries())
    assert known  # about 200 on an idle machine
    for left in tmp_path.glob(".ledger*"):
        shutil.rmtree(left)
