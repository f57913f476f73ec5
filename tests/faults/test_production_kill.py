"""``kill -9`` while clients release: nobody twice, nothing lost, nothing uncounted."""

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from curvote.chain.stage import CLIENT_BLOCK
from curvote.ledger.book import Ledger
from curvote.pipeline.config.project import Project
from curvote.pipeline.release.evidence import ledger_problems
from curvote.pipeline.store.artifacts import artifact
from tests import production
from tests.processes import in_child
from tests.small_shards import make_small

ROUNDS = 200
COHORT = {"train": 2000, "vote": 4000}
pytestmark = pytest.mark.faults


def killed_after(seconds: float, work: Callable[[], object]) -> bool:
    """Do ``work`` in a child and kill it; return whether it was still at work."""
    child = in_child(work)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def counted(project: Project) -> dict[str, set[str]]:
    """Return the clients of every release that counts against somebody's cap."""
    if not project.ledger.exists():
        return {}
    with Ledger(project.ledger) as ledger:
        counting = [e for e in ledger.entries() if e.state != "cancelled"]
        return {e.release: set(ledger.members(e.release).tolist()) for e in counting}


def published(project: Project) -> dict[str, str]:
    """Return the digest of every release that is there under its final name."""
    found = {}
    for stage in ("privatize", "evaluate"):
        for folder in (project.artifacts / stage).glob("[!.]*"):
            there = artifact(project, stage, folder.name)
            assert there.problem(content=True) is None, f"torn: {folder}"
            (table,) = there.manifest["tables"].values()
            found[folder.name] = table["sha256"]
    return found


def warm(root: Path) -> tuple[Project, float]:
    """Return a project and the seconds that its releases take, imports done."""
    project = production.write(root, clients=COHORT)
    started = time.perf_counter()
    production.run(project)
    return project, time.perf_counter() - started


@pytest.mark.parametrize("shard", [CLIENT_BLOCK, 250])
def test_kills_while_releasing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shard: int
) -> None:
    """Kill at a random moment, look, kill again or go on; 200 kills in all.

    A release is one shard, or 24 of them over 32 buckets. At every look what is
    published is counted for all its clients; what was published before is there byte
    for byte; in the end both messages are released once.
    """
    make_small(monkeypatch, shard)
    rng = random.Random(2003)
    (tmp_path / "warm").mkdir()
    warm(tmp_path / "warm")
    _, seconds = warm(_folder(tmp_path, "timed"))
    kills = rounds = 0
    while kills < ROUNDS:
        project = production.write(_folder(tmp_path, f"{rounds}"), clients=COHORT)
        before: dict[str, str] = {}
        most = seconds
        while killed_after(rng.uniform(0, most), lambda p=project: production.run(p)):
            kills += 1
            most *= 1.02  # every kill leaves more to clear up than the timed run had
            now = published(project)
            assert set(now) <= set(counted(project)), "published but not counted"
            assert before.items() <= now.items(), "a release changed or is lost"
            before = now
        check_the_end(project, before)
        rounds += 1
    print(f"{kills} kills over {rounds} cohorts, a whole run takes {seconds:.2f} s")


def check_the_end(project: Project, before: dict[str, str]) -> None:
    """What was published is kept; every client is counted for one message."""
    made = production.run(project)
    final = published(project)
    assert before.items() <= final.items()
    assert not made.blocked_steps()
    assert len(final) == len(production.confirmed(project)) == 2
    members = list(counted(project).values())
    assert [len(m) for m in members] == [2000, 4000]
    assert not members[0] & members[1]
    assert ledger_problems(project) == []
    (reports,) = (project.artifacts / "privatize").glob("[!.]*")
    rows = artifact(project, "privatize", reports.name).columns("reports", (0,))
    assert len(np.unique(rows["z"], axis=0)) == 2000, "a message twice, or lost"
    assert not list(project.clients.glob("*/.shards-*")), "shards were left behind"


def _folder(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir()
    return folder
