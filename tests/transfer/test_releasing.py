"""Where the noise of a release comes from: the source's own words, or a named seed."""

from __future__ import annotations

import numpy as np
import pytest

from curvote.base.classes import Classes
from curvote.base.entropy import SeededEntropy, Words
from curvote.systems.transfer.method.release import release, release_noise
from curvote.systems.transfer.method.task import Feature, Level, Task, form

SERVERS = {"here": Level(1.0), "there": Level(1.0)}
TABLES = [
    (np.zeros((40, 2)), np.repeat(["no", "yes"], 20)),
    (np.ones((40, 2)), np.repeat(["yes"], 40)),
]


class Hardware:
    """A source that is none of ours; it gives the same words whenever it is made."""

    def __init__(self) -> None:
        self._words = np.random.PCG64(7)
        self.given = 0

    def words(self, n: int) -> Words:
        """Return the next words, and count them."""
        self.given += n
        return np.asarray(self._words.random_raw(n), dtype=np.uint64)


def _task(name: str) -> Task:
    features = (Feature("a", 0, 1), Feature("b", 0, 1))
    return Task(features, Classes(("no", "yes")), SERVERS, name)


def _noise(task: Task, server: str, which: int, seed: int) -> np.ndarray:
    records, labels = TABLES[which]
    sent = release(task, server, records, labels, SeededEntropy(seed))
    known = task.cube(records), task.codes(labels)
    sums = form(task.release).sums(task.for_server(server), *known)
    return np.asarray(sent.values - sums)


@pytest.mark.parametrize("name", ["cells", "moments", "kernel", "counts"])
def test_seeded_noise_depends_on_task_server_and_seed_alone(name: str) -> None:
    """Never on the records; and two servers share none."""
    task = _task(name)
    first = _noise(task, "here", 0, 3)
    assert np.array_equal(first, _noise(task, "here", 1, 3))
    for other in (_noise(task, "there", 0, 3), _noise(task, "here", 0, 4)):
        assert not np.array_equal(first, other)


def test_any_other_source_is_taken_word_for_word() -> None:
    """What protects somebody is not turned into a seed of a few words."""
    task, (records, labels) = _task("cells"), TABLES[0]
    source, twin = Hardware(), Hardware()
    sent = release(task, "here", records, labels, source)
    noise, asked = (
        release_noise(task.for_server("here"), len(records)),
        task.for_server("here"),
    )
    assert noise is not None
    sums = form("cells").sums(asked, task.cube(records), task.codes(labels))
    assert np.array_equal(sent.values, noise.add(sums, twin))
    assert source.given >= sent.values.size
