"""The audit of releases of many shards: no place tells in which one a client stood."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from curvote.audit import release
from curvote.audit.release_checks import check_order
from curvote.base.entropy import Entropy
from curvote.messages import stages
from tests.noise import SEED
from tests.small_shards import make_small

ROWS = 400


@pytest.fixture(autouse=True)
def shards_of_400(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let 1,500 clients be four shards."""
    make_small(monkeypatch, ROWS)


def report(sizes: tuple[int, ...]) -> release.TableRelease:
    """Return the table of reports of so many clients."""
    honest = release.table_release("table.mrma.report", 2.0)
    return replace(honest, sizes=sizes)


class Staying:
    """Sends the rows of each shard to one bucket, the next shard's to the next."""

    def __init__(self) -> None:
        self.called = -1

    def __call__(self, n: int, count: int, entropy: Entropy) -> Any:
        entropy.words(n)
        self.called = (self.called + 1) % count
        return np.full(n, self.called)


def halves(n: int, count: int, entropy: Entropy) -> Any:
    """Send the first half of a shard to the first half of the buckets."""
    entropy.words(n)
    return np.arange(n) * count // n


def test_no_place_tells_a_shard() -> None:
    """Not of many clients once, nor of a few again and again."""
    assert check_order(report((1500,)), SEED) is None


def test_no_place_tells_a_shard_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seventeen clients in five shards: each may stand anywhere."""
    make_small(monkeypatch, 4)
    assert check_order(report((17,)), SEED) is None


@pytest.mark.parametrize("broken", [Staying(), halves])
def test_an_order_without_buckets_is_seen(monkeypatch, broken):
    """Each bucket is put in a random order, and still the place tells something."""
    monkeypatch.setattr(stages, "random_buckets", broken)
    found = check_order(report((1500,)), SEED)
    assert found is not None
    assert "follows the list" in found
