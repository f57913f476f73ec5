"""What a restored ledger is told of: whoever it may concern has spent it."""

from pathlib import Path

import pytest

from curvote.base.privacy import Budget
from curvote.ledger.book import Ledger, RestoringLedger
from tests.ledgers import reserve

TWO = Budget(0.2)


def spent(ledger: RestoringLedger | Ledger) -> dict[str, float]:
    """Return what each client of population p has spent."""
    found = ledger.spent("p")
    return dict(zip(found.clients.tolist(), found.epsilon.tolist(), strict=True))


@pytest.mark.parametrize("first", [True, False])
def test_what_concerns_everybody_concerns_who_comes_by_a_restore(tmp_path, *, first):
    """In whatever order a ledger is told of the two releases, and also later."""
    path = tmp_path / "ledger.sqlite"
    with RestoringLedger(path) as copy:
        if first:
            copy.charge_everyone("every", TWO, "p")
        copy.enter_spent("some", ["a", "b"], Budget(0.5), population="p", facts={})
        if not first:
            copy.charge_everyone("every", TWO, "p")
        assert spent(copy) == {"a": 0.7, "b": 0.7}
        copy.enter_spent("more", ["b", "c"], Budget(0.25), population="p", facts={})
    with Ledger(path) as ledger:
        reserve(ledger, "then", ["d"])
        assert spent(ledger) == {"a": 0.7, "b": 0.95, "c": 0.45, "d": 0.3}
        assert ledger.problems() == []


def test_what_concerns_everybody_is_told_once(tmp_path: Path) -> None:
    """Told again it costs nobody more: who came since then was charged by coming."""
    with RestoringLedger(tmp_path / "ledger.sqlite") as copy:
        for _ in range(2):
            copy.charge_everyone("every", TWO, "p")
            copy.enter_spent("some", ["a"], Budget(0.5), population="p", facts={})
            assert spent(copy) == {"a": 0.7}
        assert copy.problems() == []
