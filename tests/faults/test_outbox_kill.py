"""``kill -9`` during a client's release, many rounds."""

from collections import Counter
from pathlib import Path

import pytest

from tests.releasing import kill_round, undisturbed

ROUNDS = 500
pytestmark = pytest.mark.faults


def test_no_kill_loses_a_release_or_draws_one_twice(tmp_path: Path) -> None:
    """The ledger never counts less than what left, and one release is one envelope."""
    slowest = 2 * undisturbed(tmp_path / "whole")
    outcomes = Counter(
        kill_round(tmp_path / f"{seed}", seed, slowest) for seed in range(ROUNDS)
    )
    print(dict(outcomes))
    assert len(outcomes) >= 3  # killed before, within and after the release
