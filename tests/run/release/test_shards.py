"""Releases of many shards: every client once, in no order, whoever computes them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.base.entropy import Entropy, SeededEntropy, random_buckets
from curvote.base.errors import InternalError
from curvote.chain.stage import StageContext, make_all_shards, stage_functions
from curvote.ledger.book import Ledger
from curvote.pipeline.config.project import Project
from curvote.pipeline.release import production as session
from curvote.pipeline.run import execution
from curvote.pipeline.run.engines import Engine
from curvote.pipeline.run.execution import execute_step
from curvote.pipeline.store.artifacts import artifact
from tests import production
from tests.protocols.test_direct import arm
from tests.small_shards import make_small

ROWS = 16


@dataclass(frozen=True)
class Recorded:
    """Words that can be had again: a stream for each purpose, shard and bucket."""

    seed: int

    def __call__(self, purpose: str, number: int) -> Entropy:
        """Return the stream of one of them."""
        key = (*purpose.encode(), number)
        return SeededEntropy(np.random.SeedSequence(self.seed, spawn_key=key))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a shard be of 16 clients: 140 are nine."""
    make_small(monkeypatch, ROWS)


def released(project: Project, **how: Any) -> dict[str, str]:
    """Run the pipeline; return the digest of each released table."""
    made = production.plan(project)
    for step in made.steps_to_run():
        execute_step(project, step, **how)
    return production.bytes_of(project, made)


def test_every_client_of_every_shard_is_released_once(tmp_path: Path) -> None:
    """Tables have a row for each sender, or count each once; the ledger knows them."""
    project = production.write(tmp_path)
    made = production.run(project)
    privatize, evaluate = (
        artifact(project, step.stage.name, step.key)
        for step in production.releases(made)
    )
    assert privatize.n_rows == 60
    assert privatize.columns("reports", (0,))["z"].shape == (60, 4)
    votes = evaluate.columns("votes", (0,))
    assert votes["learner"].tolist() == list(range(5))
    assert votes["n"].tolist() == [16] * 5
    assert (votes["positive"] <= votes["n"]).all()
    with Ledger(project.ledger) as ledger:
        members = [set(ledger.members(e.release)) for e in ledger.entries()]
    assert [len(each) for each in members] == [60, 80]


def test_the_engine_changes_no_byte_of_a_release(tmp_path: Path) -> None:
    """Under words that can be had again, one process or two threads draw the same."""
    found = []
    for name, engine in (("alone", Engine()), ("together", Engine("threads", 2))):
        (tmp_path / name).mkdir()
        project = production.write(tmp_path / name)
        found.append(released(project, engine=engine, words=Recorded(5)))
    assert found[0] == found[1]
    assert len(found[0]) == 2


@pytest.mark.parametrize("changes", [{}, arm("mean")])
def test_the_table_is_the_one_whose_order_is_audited(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    """Through files of shards it is what the audit makes of them in memory."""
    project = production.write(tmp_path, **changes)
    made = production.plan(project)
    for step in made.steps_to_run():
        execute_step(project, step, words=Recorded(5))
    for step in production.releases(made):
        stored = artifact(project, *step.id)
        inputs = {name: artifact(project, *at) for name, at in step.sources.items()}
        given = step.stage.name, (0,), step.sizes, inputs, step.params, stored.metadata
        expected = make_all_shards(
            stage_functions(step.stage.module),
            StageContext(*given, entropy_source=Recorded(5)),
        )
        for table, columns in expected.items():
            found = stored.columns(table, (0,))
            assert found.keys() == columns.keys()
            for name, values in columns.items():
                np.testing.assert_array_equal(found[name], values)


def test_other_words_give_other_bytes(tmp_path: Path) -> None:
    """And the operating system's are never the same."""
    found = []
    for name, how in (("a", {"words": Recorded(1)}), ("b", {}), ("c", {})):
        (tmp_path / name).mkdir()
        found.append(released(production.write(tmp_path / name), **how)["privatize"])
    assert len(set(found)) == 3


def test_a_shard_that_is_drawn_twice_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine may think a worker dead that is not: what is there first stays."""
    drawn = execution.draw_shard

    def twice(job: Any, unit: Any) -> None:
        drawn(job, unit)
        place, number = unit
        before = execution._shard_file(job, place, number).read_bytes()
        drawn(job, unit)
        assert execution._shard_file(job, place, number).read_bytes() == before

    monkeypatch.setattr(execution, "draw_shard", twice)
    project = production.write(tmp_path, **arm("mean"))
    made = production.run(project)
    (step,) = production.releases(made)
    assert artifact(project, step.stage.name, step.key).n_rows == 140


def test_nothing_of_a_failed_release_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its shards nor its temporary folder, and nobody is counted."""
    project = production.write(tmp_path, **arm("mean"))

    def fails(*_: Any) -> None:
        raise InternalError("on purpose")

    with monkeypatch.context() as patch:
        patch.setattr(execution, "_merge_buckets", fails)
        with pytest.raises(InternalError, match="on purpose"):
            production.run(project)
    assert not list((project.root / "data").glob("**/.shards-*"))
    assert not list((project.artifacts / "privatize").glob("*"))
    with Ledger(project.ledger) as ledger:
        assert [entry.state for entry in ledger.entries()] == ["cancelled"]
    production.run(project)
    assert len(production.confirmed(project)) == 1


def test_shards_are_never_on_the_servers_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in the clients' order, or says who is asked what, is its owner's only."""
    seen: list[tuple[Path, int]] = []
    joined = execution._merge_buckets

    def looked(job: Any, *rest: Any) -> Any:
        folder = Path(job.scratch)
        seen.append((folder, folder.stat().st_mode & 0o777))
        assert {p.suffix for p in folder.iterdir()} == {".npy", ".arrow"}
        return joined(job, *rest)

    monkeypatch.setattr(execution, "_merge_buckets", looked)
    project = production.write(tmp_path)
    production.run(project)
    assert len(seen) == 2
    for folder, mode in seen:
        assert project.clients in folder.parents
        assert mode == 0o700
        assert not folder.exists()


def test_a_release_is_nobody_s_to_read_until_it_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a killed one leaves is drawn anew: somebody would have two of each client.

    Published it is as open as its shelf, though a kill came between.
    """
    project = production.write(tmp_path, **arm("mean"))
    shelf = project.artifacts / "privatize"
    shelf.mkdir(parents=True)
    shelf.chmod(0o750)
    modes: list[int] = []
    joined = execution._merge_buckets

    def looked(job: Any, *rest: Any) -> Any:
        modes.append(Path(job.folder).stat().st_mode & 0o777)
        return joined(job, *rest)

    def killed(_published: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(execution, "_merge_buckets", looked)
    with monkeypatch.context() as patch:
        patch.setattr(session, "open_to_readers", killed)
        with pytest.raises(KeyboardInterrupt):
            production.run(project)
    (made,) = shelf.iterdir()
    assert [*modes, made.stat().st_mode & 0o777] == [0o700] * 2
    production.run(project)
    assert len(modes) == 1
    assert made.stat().st_mode & 0o777 == 0o750
    assert {file.stat().st_mode & 0o777 for file in made.iterdir()} == {0o640}
    assert len(production.confirmed(project)) == 1


def test_buckets_are_equally_likely() -> None:
    """Each takes the leading bits of a word of its own; one bucket takes none."""
    words = SeededEntropy(3)
    found = np.bincount(random_buckets(80_000, 8, words), minlength=8)
    assert np.abs(found - 10_000).max() < 6 * np.sqrt(10_000 * 7 / 8)
    before = SeededEntropy(4)
    assert not random_buckets(10, 1, before).any()
    assert before.words(1) == SeededEntropy(4).words(1)
