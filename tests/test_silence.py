"""Silence tells nothing: a task is judged alone, and no record changes what is seen."""

from __future__ import annotations

import json
import random
from collections import Counter
from copy import deepcopy
from pathlib import Path

import pytest

from tests.fuzzing import RECORDS, Home, bend, deep, invited, observed, released
from tests.valid_tasks import document, tasks
from curvote.protocols.judging import judged
from curvote.errors import UserError


def fuzz(home: Home, count: int, seed: int) -> Counter[str]:
    """Bend ``count`` tasks; ask 20 records each, and compare all that is seen."""
    rng = random.Random(seed)
    known = [document(task) for task in tasks().values()]
    outcomes: Counter[str] = Counter()
    for _ in range(count):
        bent, other = deepcopy(rng.choice(known)), rng.choice(known)
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            bend(rng, bent, other)
        about = rng.choice([0, 0, 0, 1, 10**9, -1])
        ends = {observed(home, bent, about, number).outcome for number in (0, 1)}
        first = observed(home, bent, about, 0)
        seen = [first] * RECORDS
        if first.outcome == "sent":
            task = judged(bent)
            invitation = invited(task, about)
            seen = [released(home, task, invitation, k) for k in range(RECORDS)]
        assert ends == {first.outcome}
        assert all(each == first for each in seen), (bent, seen)
        assert first.words.isprintable()
        outcomes[first.outcome] += 1
    return outcomes


def test_fuzz(tmp_path: Path) -> None:
    import time
    s=time.perf_counter()
    c = fuzz(Home(tmp_path), 1000, 1)
    print(c, time.perf_counter()-s)
    assert 0
