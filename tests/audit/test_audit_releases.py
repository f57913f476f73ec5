"""The audit of whole releases, and of what chance never shows: it sees what it must."""

import os
import random
import secrets
import uuid
from dataclasses import replace

import numpy as np
import pytest

from curvote.audit import choice, message_subject, release, run, shipped
from curvote.audit.choice import drawing_names
from curvote.base.entropy import SeededEntropy, SystemEntropy, random_permutation
from curvote.checks import mechanism_subject, residuals, word_checks
from curvote.checks.child import run_in_child
from curvote.checks.examples import example_task
from curvote.checks.word_checks import (
    ReplayedEntropy,
    Tape,
    WordMismatch,
    play_tape,
)
from curvote.mechanisms import exact, make, names
from curvote.messages import stages
from curvote.messages.message import message_of
from tests.audit.answers import answers_table
from tests.noise import SEED


def small(name: str, runs: int = 40) -> release.TableRelease:
    """Return a table of few rows that is drawn few times, so that checks are quick."""
    honest = release.table_release(name, 2.0)
    return replace(honest, sizes=(1, 5, 17, 1500), runs=runs)


def test_a_tape_answers_for_the_whole_operating_system() -> None:
    """Also for what keeps a copy of urandom: random, secrets, uuid and NumPy."""

    def asked() -> list[object]:
        with play_tape(Tape(1)):
            return [
                os.urandom(5),
                random.SystemRandom().random(),
                secrets.token_hex(4),
                uuid.uuid4().hex,
                np.random.default_rng().random(),
                SystemEntropy().words(3).tolist(),
            ]

    assert asked() == asked()
    assert len(os.urandom(5)) == 5


def test_given_words_are_whole_answers() -> None:
    """A request that the operating system was not asked in this form is no match."""
    with play_tape(Tape(SEED)) as tape:
        drawn = SystemEntropy().words(4)
    assert (ReplayedEntropy(tape.answers).words(4) == drawn).all()
    with pytest.raises(WordMismatch):
        ReplayedEntropy(tape.answers).words(3)


def test_an_order_is_drawn_from_a_word_for_each_row() -> None:
    """All orders are as likely; a tie of words is drawn again."""
    counts = np.zeros((3, 3))
    entropy = SeededEntropy(SEED)
    for _ in range(3000):
        counts[np.arange(3), random_permutation(3, entropy)] += 1
    assert np.abs(counts - 1000).max() < 6 * np.sqrt(3000 * 2 / 9)

    class Tied:
        def __init__(self) -> None:
            self.given = [np.array([7, 7]), np.array([9, 8])]

        def words(self, n: int) -> np.ndarray:
            return self.given.pop(0).astype(np.uint64)

    assert random_permutation(2, Tied()).tolist() == [1, 0]


@pytest.mark.parametrize("runs", [40, pytest.param(400, marks=pytest.mark.faults)])
@pytest.mark.parametrize(
    "name", ["table.mrma.report", "table.mrma.vote", "table.majority.report"]
)
def test_tables_of_a_cohort_pass(name: str, runs: int) -> None:
    """What `released.block` stores is what the message draws from system words."""
    (row,) = run(small(name, runs), samples=1)
    assert row.verdict == "pass", row.checks
    assert set(row.checks) == {
        *("source", "words", "noised", "forks", "observables", "order", "payload")
    }


@pytest.mark.parametrize(
    ("planted", "check"),
    [
        (lambda n, entropy: np.arange(n), "order"),
        (lambda n, entropy: np.random.default_rng(3).permutation(n), "order"),
        (lambda n, entropy: np.random.default_rng().permutation(n), "order"),
    ],
)
def test_an_order_that_somebody_may_know_is_seen(monkeypatch, planted, check):
    """In the stage itself, one line changed."""
    monkeypatch.setattr(stages, "random_permutation", planted)
    (row,) = run(small("table.mrma.report"), samples=1)
    assert check in row.caught_by


@pytest.mark.parametrize(
    "words",
    [
        lambda self, n: np.random.default_rng().integers(1 << 63, size=n).view("u8"),
        lambda self, n: SeededEntropy(os.getpid()).words(n),
        lambda self, n: np.frombuffer(os.urandom(4 * n), "u4").astype("u8") << 32,
        lambda self, n: np.frombuffer(os.urandom(8 * n), "u8") >> 32 << 32,
    ],
)
def test_words_from_elsewhere_or_of_fewer_bits_are_seen(monkeypatch, words):
    """Whatever they are made of: what left is not drawn from the system's words."""
    monkeypatch.setattr(SystemEntropy, "words", words)
    (row,) = run(small("table.mrma.report"), samples=0)
    assert "words" in row.caught_by


@pytest.mark.parametrize("bits", [31, 32])
def test_a_coarse_comparison_is_seen(monkeypatch: pytest.MonkeyPatch, bits) -> None:
    """One that uses half a word, though no number of draws would show it."""
    honest, shift = exact.bernoulli_exp, np.uint64(bits)

    def coarse(words, numerators, t, entropy):
        return honest(words >> shift << shift, numerators, t, entropy)

    monkeypatch.setattr(exact, "bernoulli_exp", coarse)
    assert next(mechanism_subject.primitive_faults(), None) is not None


@pytest.mark.parametrize("name", names())
def test_residuals_are_uniform_and_half_the_noise_is_not(name: str) -> None:
    """For every mechanism, and wherever the inputs are."""
    rng = np.random.default_rng(SEED)
    honest, twin = (shipped(name, epsilon) for epsilon in (1.0, 2.0))
    clients = honest.many(20_000, rng)
    sent = (s.send(clients, SeededEntropy(SEED)) for s in (honest, twin))
    found = [honest.residuals(clients, outputs, rng) for outputs in sent]
    assert residuals.uniformity_gap(found[0], 1e-6) is None
    if name not in {"hybrid", "duchi", "duchi_vector", "piecewise", "square_wave"}:
        assert residuals.uniformity_gap(found[1], 1e-6) is not None


def test_noise_used_again_far_away_is_seen() -> None:
    """One client of ten with the noise of another, at any distance and sign."""
    rng = np.random.default_rng(SEED)
    noise = rng.random((40_000, 2))
    assert residuals.check_lags(noise) is None
    again = np.flatnonzero(rng.random(30_000) < 0.1)
    noise[again + 9_321, 1] = 1 - noise[again, 0]
    assert "clients 9321 apart share noise" in str(residuals.check_lags(noise))


def test_known_answers_name_every_shipped_sampler() -> None:
    """And a sampler that takes its words in another order is told."""
    subject = shipped("laplace", 0.5)
    assert word_checks.answer_key(subject) in word_checks.KNOWN_ANSWERS
    assert word_checks.check_answers(subject) is None
    assert len(word_checks.KNOWN_ANSWERS) == 4 * len(drawing_names())


@pytest.mark.parametrize("share", ["equal", 0.01, 0.5, 0.9])
def test_every_split_is_within_its_budget(share) -> None:
    """Exactly, for any number of coordinates, and in the draws."""
    stated = example_task("mrma", "report", 1.5)
    assert share in message_subject.SHARES
    assert not list(message_subject.split_faults(stated, message_of(stated)))


@pytest.mark.parametrize("name", names())
def test_words_do_not_count_the_input(name: str) -> None:
    """The same number of words whatever the input; as often where some are rejected."""
    assert word_checks.check_word_counts(shipped(name, 1.0), SEED) is None


def test_a_child_of_a_fork_says_what_it_made() -> None:
    """In a process of its own."""
    assert run_in_child(os.getpid) != os.getpid()


def test_an_input_out_of_bounds_has_the_residual_of_the_bound() -> None:
    """What is clipped is hidden as well as the bound itself."""
    laplace, rng = make("laplace", epsilon=1.0), np.random.default_rng(SEED)
    far = np.full(5000, 7.0)
    out = laplace.randomize(far, SeededEntropy(SEED))
    assert (
        residuals.uniformity_gap(
            residuals.output_residuals(laplace, far, out, rng), 1e-6
        )
        is None
    )


def test_every_sampler_gives_its_known_answers() -> None:
    """At one of the levels of each; what follows looks at all of them."""
    levels = (*choice.EPSILONS, *choice.FAR_EPSILONS)
    for i, name in enumerate(drawing_names()):
        subject = choice.drawing_subject(name, levels[i % len(levels)])
        assert word_checks.answer_key(subject) in word_checks.KNOWN_ANSWERS
        assert word_checks.check_answers(subject) is None


@pytest.mark.faults
def test_pinning_writes_the_answers_that_are_known() -> None:
    """The table is what its writer makes of today's code, to the letter."""
    assert word_checks.ANSWERS_FILE.read_text(encoding="utf-8") == answers_table()
