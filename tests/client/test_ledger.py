"""The ledger: what is reserved counts, what is cancelled does not, caps are exact."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from curvote.base.errors import InternalError, UserError
from curvote.base.privacy import Budget
from curvote.ledger.amounts import sum_entries
from curvote.ledger.book import Ledger
from curvote.ledger.cohort import ClientIds

FACTS: dict[str, str | int | float] = {"stage": "privatize", "number": 1, "share": 0.5}
ENDLESS = Budget(1.7e308, 0.999)
QUICK = settings(max_examples=25, deadline=None, derandomize=True)


@contextmanager
def temporary_ledger() -> Iterator[Ledger]:
    """Open a fresh ledger, for tests that need many."""
    with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder) / "l") as opened:
        yield opened


def reserve(
    ledger: Ledger,
    release: str,
    clients: ClientIds,
    epsilon: float = 0.5,
    delta: float = 0.0,
    *,
    cap: Budget = ENDLESS,
    population: str = "p",
) -> None:
    """Reserve with the usual facts, under a cap that is set once."""
    budget = Budget(epsilon, delta)
    ledger.set_cap(population, cap)
    ledger.reserve(release, clients, budget, population=population, facts=FACTS)


def state(ledger: Ledger) -> object:
    """Return all that a ledger says."""
    entries = ledger.entries()
    spent = [ledger.spent(p) for p in sorted({e.population for e in entries})]
    return entries, [(*map(list, (s.clients, s.epsilon, s.delta)),) for s in spent]


class Machine(RuleBasedStateMachine):
    """Random calls against a model: a dictionary of releases, sums of tenths."""

    releases = st.sampled_from("abcd")
    cohorts = st.sets(st.integers(0, 5), min_size=1)
    tenths = st.integers(1, 6)
    CAP = 10

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "ledger.sqlite"
        self.ledger = Ledger(self.path)
        self.model: dict[str, tuple[str, set[int], int]] = {}

    def spent(self, client: int) -> int:
        """Return the tenths that a client has spent."""
        counted = (r for r in self.model.values() if r[0] != "cancelled")
        return sum(epsilon for _, clients, epsilon in counted if client in clients)

    @rule(release=releases, clients=cohorts, epsilon=tenths)
    def reserve(self, release: str, clients: set[int], epsilon: int) -> None:
        """Only a new or cancelled release, and only where all have room."""
        ids: ClientIds = np.array(sorted(clients))
        cap = Budget(self.CAP / 10)
        fits = all(self.spent(c) + epsilon <= self.CAP for c in clients)
        if self.model.get(release, ("cancelled",))[0] != "cancelled":
            with pytest.raises(InternalError):
                reserve(self.ledger, release, ids, epsilon / 10, cap=cap)
        elif not fits:
            with pytest.raises(UserError, match="have no room"):
                reserve(self.ledger, release, ids, epsilon / 10, cap=cap)
        else:
            reserve(self.ledger, release, ids, epsilon / 10, cap=cap)
            self.model[release] = ("reserved", clients, epsilon)

    @rule(release=releases, to=st.sampled_from(["confirmed", "cancelled", "spent"]))
    def settle(self, release: str, to: str) -> None:
        """Only from reserved; confirmed twice is once."""
        calls = {
            "confirmed": lambda: self.ledger.confirm(release, place="x", digest="y"),
            "cancelled": lambda: self.ledger.cancel(release),
            "spent": lambda: self.ledger.mark_spent(release, "killed"),
        }
        found = self.model.get(release)
        again = found is not None and found[0] == to == "confirmed"
        if found is not None and (found[0] == "reserved" or again):
            calls[to]()
            self.model[release] = (to, *found[1:])
        else:
            with pytest.raises(InternalError):
                calls[to]()

    @rule()
    def reopen(self) -> None:
        """What was said is on the disk."""
        self.ledger.close()
        self.ledger = Ledger(self.path)

    @invariant()
    def agrees(self) -> None:
        """States, members and sums are the model's, and the ledger is sound."""
        found = {e.release: (e.state, e.n_clients) for e in self.ledger.entries()}
        assert found == {r: (m[0], len(m[1])) for r, m in self.model.items()}
        spent = self.ledger.spent("p")
        sums = dict(zip(spent.clients.tolist(), spent.epsilon.tolist(), strict=True))
        expected = {str(c): self.spent(c) / 10 for c in range(6) if self.spent(c)}
        assert sums == expected
        for release, (_, clients, _) in self.model.items():
            assert set(self.ledger.members(release)) == {str(c) for c in clients}
        for client in range(6):
            about = self.ledger.releases_of("p", client)
            assert sum_entries(about)[0] == expected.get(str(client), 0)
        assert self.ledger.problems() == []

    def teardown(self) -> None:
        """Delete the file."""
        self.ledger.close()
        shutil.rmtree(self.folder)


TestMachine = Machine.TestCase
TestMachine.settings = settings(QUICK, stateful_step_count=25)


def test_ten_tenths_make_one(ledger: Ledger) -> None:
    """Ten releases of 0.1 fit into a cap of 1, an eleventh of 1e-9 does not."""
    for i in range(10):
        reserve(ledger, f"r{i}", ["a"], 0.1, 1e-7, cap=Budget(1.0, 1e-6))
    before = state(ledger)
    for epsilon, delta in ((1e-9, 0.0), (1e-300, 1e-15)):
        with pytest.raises(UserError, match=r"1 of 1 clients .* no room"):
            reserve(ledger, "more", ["a"], epsilon, delta, cap=Budget(1.0, 1e-6))
    assert state(ledger) == before
    assert ledger.spent("p").epsilon.tolist() == [1.0]
    assert ledger.spent("p").delta.tolist() == [1e-6]


@QUICK
@given(st.floats(1e-6, 1e3), st.integers(2, 20))
def test_every_equal_part_of_a_cap_fits(epsilon: float, n: int) -> None:
    """However epsilon / n was rounded, n of them fit and n + 1 do not."""
    with temporary_ledger() as ledger:
        for i in range(n):
            reserve(ledger, f"{i}", ["a"], epsilon / n, cap=Budget(epsilon))
        with pytest.raises(UserError, match="no room"):
            reserve(ledger, "more", ["a"], epsilon / n, cap=Budget(epsilon))


@QUICK
@given(st.lists(st.floats(1e-12, 1e6), min_size=1, max_size=30), st.floats(1e-9, 1e6))
def test_no_rounding_lets_a_sum_pass(budgets: list[float], cap: float) -> None:
    """By exact fractions: accepted sums exceed a cap by less than 1e-9, absolutely.

    What is refused would really have exceeded it (up to the last place of a double).
    """
    spent = written = Fraction(0)
    with temporary_ledger() as ledger:
        for i, epsilon in enumerate(budgets):
            after = spent + Fraction(epsilon)
            try:
                reserve(ledger, f"{i}", ["a"], epsilon, cap=Budget(cap))
            except UserError:
                assert after > Fraction(cap) * (1 - Fraction(1, 10**14))
            else:
                spent, written = after, written + Fraction(repr(epsilon))
                assert spent <= Fraction(cap) + Fraction(1, 10**9)
        shown = Fraction(repr(float(ledger.spent("p").epsilon.sum())))
        assert written <= shown <= written * (1 + Fraction(1, 10**14))


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1 / 3, 1e308])
def test_extreme_budgets_are_exact(ledger: Ledger, epsilon: float) -> None:
    """Nothing overflows, vanishes or changes on its way through the file."""
    reserve(ledger, "a", ["a"], epsilon, 5e-324)
    reserve(ledger, "b", ["b", "a"], 1.0)
    found = ledger.entry("a")
    assert found is not None
    assert found.budget == Budget(epsilon, 5e-324)
    assert dict(zip(*map(list, _spent(ledger)), strict=True))["a"] >= epsilon
    assert ledger.problems() == []


def _spent(ledger: Ledger) -> tuple[np.ndarray, np.ndarray]:
    spent = ledger.spent("p")
    return spent.clients, spent.epsilon


def test_a_number_and_its_text_are_one_client(ledger: Ledger) -> None:
    """7, numpy's 7, 7.0, " 7" and "7.0" are the same client; "07" is another."""
    cap = Budget(1.0)
    reserve(ledger, "a", np.array([7, 8]), cap=cap)
    reserve(ledger, "b", np.array(["7", "07"]), cap=cap)
    with pytest.raises(UserError, match="1 of 2 clients"):
        reserve(ledger, "c", ["7", "9"], cap=cap)
    for spelt in (["7.0"], [" 7 "], np.array([7.0]), ["7.00\n"]):
        with pytest.raises(UserError, match="1 of 1 clients"):
            reserve(ledger, "c", spelt, cap=cap)
    reserve(ledger, "d", ["07", "7a"], cap=cap)
    reserve(ledger, "e", ["7"], cap=cap, population="others")
    assert [e.release for e in ledger.releases_of("p", 7)] == ["a", "b"]
    assert [e.release for e in ledger.releases_of("p", "07")] == ["b", "d"]
    assert ledger.releases_of("p", "nobody") == []


@pytest.mark.parametrize(
    ("clients", "said"),
    [
        ([], "empty"),
        (["a", "b", "a"], "1 of 3 .* a second time"),
        (np.array([1, 2, 2, 2]), "2 of 4 .* a second time"),
        (["a", ""], "empty"),
        (["a\0"], "zero byte"),
        (["\ud800"], "no text"),
        (np.array([1.5]), "whole numbers or text"),
        (np.array([True]), "whole numbers or text"),
        (np.array([["a"]]), "shape"),
        ("abc", "single text"),
        (["a", None], "whole numbers or text"),
    ],
)
def test_ids_that_name_nobody_are_refused(ledger, clients, said):
    """Before anything is written."""
    with pytest.raises(UserError, match=said):
        reserve(ledger, "r", clients)
    assert state(ledger) == ([], [])


def test_a_refusal_counts_but_names_nobody_and_writes_nothing(ledger: Ledger) -> None:
    """One client without room refuses all; the message may end in a public log."""
    reserve(ledger, "a", ["canary-1", "canary-2"], 0.8, cap=Budget(1.0))
    before = state(ledger)
    with pytest.raises(UserError) as raised:
        reserve(ledger, "b", ["canary-2", "canary-3"], 0.3, cap=Budget(1.0))
    message = str(raised.value)
    for words in ("1 of 2 clients", "epsilon 0.3", "epsilon 1 ", "epsilon 0.8"):
        assert words in message
    assert "canary" not in message
    assert state(ledger) == before
    assert ledger.entry("b") is None
    assert ledger.count_releases() == (1, 2)


def test_an_entry_says_what_was_told(ledger: Ledger) -> None:
    """Facts, cap and times come back; another digest or place is no repetition."""
    reserve(ledger, "a", ["x", "y"], cap=Budget(2.0, 1e-6))
    ledger.confirm("a", place="data/a", digest="00ff")
    ledger.confirm("a", place="data/a", digest="00ff")
    for place, digest in (("data/a", "00fe"), ("data/b", "00ff")):
        with pytest.raises(InternalError, match="is confirmed"):
            ledger.confirm("a", place=place, digest=digest)
    found = ledger.entry("a")
    assert found is not None
    assert (found.facts, found.cap, found.n_clients) == (FACTS, Budget(2.0, 1e-6), 2)
    assert (found.place, found.digest) == ("data/a", "00ff")
    assert found.confirmed is not None
    assert found.reserved <= found.confirmed
    reserve(ledger, "b", ["x"], population="other")
    ledger.mark_spent("b", "killed while it was published")
    (other,) = ledger.entries("other")
    assert (other.reason, other.confirmed) == ("killed while it was published", None)
    assert ledger.entries() == [found, other]
    assert ledger.entries("nowhere") == []
    assert ledger.spent("nowhere").clients.tolist() == []
