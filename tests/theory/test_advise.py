"""What to expect of `direct`: as simulated reports have it; and `curvote advise`."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from benchmarks.bench_advise import measured
from benchmarks.choosing_world import World, direct
from benchmarks.laws import Law
from curvote.advise import direct as theory
from curvote.advise.outlook import expect_alone, expect_joined, make_offer
from curvote.base.errors import UserError
from curvote.cli.app import app
from curvote.curves.direction import Whitening
from curvote.messages.arms import make_directions
from curvote.systems.direct.system import RECORD_WORTH, choose_protocol, volunteer_worth
from curvote.theory import Signal, expect_direct, look_ahead, strengths
from tests.noise import SEED

MIDDLE, STRONG = Signal(0.25), Signal(0.10)


@pytest.mark.parametrize(
    ("n", "d", "epsilon", "signal", "arm"),
    [
        (1000, 4, 1.0, MIDDLE, "mean"),
        (600, 2, 1.0, STRONG, "mean"),
        (3000, 4, 1.0, Signal(0.25, 0.3), "joint"),
        (1000, 3, 2.0, STRONG, "joint"),
        (2000, 6, 5.0, Signal(0.25, 0.4), "two"),
        (300, 4, 10.0, STRONG, "two"),
        (2000, 1, 2.0, MIDDLE, "two"),
        (1500, 12, 2.0, STRONG, "joint"),
        (60, 4, 12.0, Signal(0.4), "mean"),  # more sampling than noise
    ],
)
def test_the_expectation_is_within_two_points_of_simulated_reports(
    n, d, epsilon, signal, arm
):
    """Real vectors, real noise, real decoders; mean and spread from run to run."""
    told = expect_direct(n, d, epsilon, signal, arm=arm)
    worlds = (World.draw(signal, d, seed) for seed in range(80))
    found = [direct(world, n, epsilon, arm) for world in worlds]
    assert abs(told.error - np.mean(found)) < 0.02
    assert abs(told.spread - np.std(found)) < 0.02
    assert signal.best - 1e-9 < told.error


@pytest.mark.parametrize("arm", ["mean", "joint", "two"])
@pytest.mark.parametrize(
    "signal", [MIDDLE, pytest.param(STRONG, marks=pytest.mark.faults)]
)
def test_more_clients_or_a_larger_epsilon_do_not_hurt(arm, signal):
    """Nor do fewer numbers; from no signal to the best rule's error."""

    def errors(asked):
        found = [expect_direct(n, d, e, signal, arm=arm).error for n, d, e in asked]
        return np.array(found)

    clients = errors([(n, 4, 1.0) for n in (10, 300, 3000, 100_000)])
    budgets = errors([(2000, 4, e) for e in (0.05, 0.5, 4.0)])
    numbers = errors([(2000, d, 1.0) for d in (12, 6, 2)])
    for found in (clients, budgets, numbers):
        assert (np.diff(found) < 0.005).all()
        assert found[-1] < found[0] - 0.04
    assert clients[-1] < signal.best + 0.01
    assert clients[0] > 0.9 * signal.majority


@given(balanced=st.floats(0.02, 0.49), positive=st.floats(0.03, 0.97))
@settings(deadline=None, max_examples=25)
def test_no_rule_beats_the_best(balanced, positive):
    """One along the signal with the right threshold reaches it; shares are as said."""
    signal = Signal(balanced, positive)
    x = np.random.default_rng(0).standard_normal(200_000)
    assert signal.chance(x).mean() == pytest.approx(positive, abs=0.006)
    own = signal.error(
        np.array([signal.slope]), np.array([0.0]), np.array([signal.intercept])
    )
    assert own[0] == pytest.approx(signal.best, abs=2e-3)
    across, constant = np.meshgrid(np.linspace(0, 2, 9), np.linspace(-3, 3, 31))
    others = signal.error(np.ones(across.size), across.ravel(), constant.ravel())
    assert others.min() > signal.best - 2e-3
    assert signal.best <= signal.majority + 1e-9
    assert Signal(balanced).best == pytest.approx(balanced)


@given(
    along=st.floats(-1, 1),
    across=st.floats(0.01, 1),
    intercept=st.floats(0.01, 1),
    positive=st.sampled_from([0.2, 0.5, 0.7]),
)
@settings(deadline=None, max_examples=25)
def test_errors_are_those_of_drawn_records(along, across, intercept, positive):
    """The integral beside 200,000 records and labels."""
    signal, rng = Signal(0.2, positive), np.random.default_rng(1)
    x, other, coin = *rng.standard_normal((2, 200_000)), rng.random(200_000)
    named = along * x + across * other + intercept > 0
    wrong = np.mean(named != (coin < signal.chance(x)))
    parts = (np.array([part]) for part in (along, across, intercept))
    assert signal.error(*parts)[0] == pytest.approx(wrong, abs=5 * 0.5 / 200_000**0.5)


@pytest.mark.parametrize("arm", ["mean", "joint"])
@pytest.mark.parametrize("positive", [0.5, 0.8])
def test_means_are_those_of_drawn_records(arm, positive):
    """In the public coordinates to sampling error, in others nearly so."""
    rng, signal = np.random.default_rng(3), Signal(0.1, positive)
    world = theory.World.draw(rng, signal, make_directions(arm, 3, "standard", "auto"))
    z = rng.standard_normal((200_000, 3))
    labels = np.where(rng.random(len(z)) < signal.chance(z @ world.slant), 1, -1)
    stretched = Whitening(np.diag([1.5, 1, 0.5]) + np.eye(3, k=1) / 2, np.ones(3) / 2)
    found = world.directions.vectors(z, labels).mean(axis=0)
    moved = world.directions.vectors(stretched.apply(z), labels).mean(axis=0)
    assert np.abs(world.mean() - found).max() < 5 / np.sqrt(len(z))
    near = np.linalg.norm(world.mean() + world.mean_shift(stretched) - moved)
    assert near < 0.35 * np.linalg.norm(found - moved)


def test_an_expectation_is_a_function_of_its_arguments():
    """The same numbers twice; another seed within the stated spread."""
    first, again, other = (
        expect_direct(2000, 4, 1.0, MIDDLE, seed=seed) for seed in (1, 1, 2)
    )
    assert first == again
    assert 0 < abs(first.error - other.error) < 5 * first.spread / np.sqrt(100)


@pytest.mark.parametrize("positive", [0.8, pytest.param(0.5, marks=pytest.mark.faults)])
def test_nothing_is_promised_within_a_point_of_the_majority(positive):
    """And something is, where there is more to gain."""
    found = look_ahead(3000, 4, [0.001, 10.0], positive)
    assert found.majority == pytest.approx(min(positive, 1 - positive))
    for row in found.rows:
        for name, told in row.expected.items():
            assert row.gains_nothing(name) == (told.error > found.majority - 0.01)
    assert all(found.rows[0].gains_nothing(name) for name in found.signals)
    assert not found.rows[-1].gains_nothing("strong")


@pytest.mark.parametrize(
    ("records", "degree"),
    [("normal", 0), ("shifted", 0.8), ("lognormal", 0.6), ("student", 4)],
)
@pytest.mark.parametrize("positive", [0.5, 0.8])
def test_real_reports_end_between_the_stated_ends(records, degree, positive):
    """At least four of five runs, of nine of ten that are promised."""
    law = Law(records, degree, "dense", 3, positive, 1500, 4, (1.0,), (SEED,))
    errors, told, (low, high) = measured(law, 20)
    assert low <= told <= high
    assert np.mean((errors > low - 0.01) & (errors < high + 0.01)) >= 0.8


def test_ends_are_a_function_of_public_numbers_and_close_up():
    """Twice the same; more clients bring them together; no rule beats the best."""
    signal, width = Signal(0.2, 0.6), []
    for n in (500, 5000, 100_000):
        told = expect_direct(n, 3, 1.0, signal)
        low, high = theory.error_range(n, 3, 1.0, signal, told)
        assert signal.best <= low <= told.error <= high < 1
        width.append(high - low)
    assert (low, high) == theory.error_range(n, 3, 1.0, signal, told)
    assert width == sorted(width, reverse=True)


@pytest.mark.parametrize("law", list(theory.LAWS))
def test_laws_are_as_wide_as_public_constants_say(law):
    """Of variance near 1, so that only their shape is hard."""
    rng = np.random.default_rng(SEED)
    variances = [theory.LAWS[law](rng, 5).var(axis=0) for _ in range(20)]
    assert np.mean(variances) == pytest.approx(1, abs=0.25)


def test_worth_grows_with_volunteers_numbers_and_classes():
    """1,800 for fifty records of five numbers."""
    assert volunteer_worth(50, 5) == RECORD_WORTH * 6 * 50 == 1800
    assert volunteer_worth(100, 5) == 2 * volunteer_worth(50, 5)
    assert volunteer_worth(50, 5, 5) == 4 * volunteer_worth(50, 5)
    with pytest.raises(UserError):
        volunteer_worth(50, 0)


def test_what_is_worth_the_same_errs_about_alike():
    """Reports of N epsilon^2 = 6 p n_v and n_v volunteers, within some points."""
    alone = expect_alone(50, 4, STRONG).error
    reports = expect_direct(1500, 4, 1.0, STRONG).error
    assert abs(alone - reports) < 0.04


def test_the_join_goes_from_volunteers_to_reports():
    """At a small epsilon it is the one, at a large one the other, never far above."""
    alone = expect_alone(50, 4, STRONG).error
    for epsilon, other in (
        (0.05, alone),
        (8.0, expect_direct(3000, 4, 8.0, STRONG).error),
    ):
        assert expect_joined(50, 3000, 4, epsilon, STRONG).error < other + 0.01
    both = expect_joined(50, 3000, 4, 1.0, STRONG).error
    assert both < min(alone, expect_direct(3000, 4, 1.0, STRONG).error)


def test_an_offer_says_which_part_tells_more():
    """By the formula, at each epsilon; what is worth adds up."""
    told = make_offer(50, 3000, 5, [0.5, 1.0], {"strong": STRONG}).document()
    json.dumps(told)
    assert told["worth"] == 1800
    assert [row["better"] for row in told["rows"]] == ["volunteers", "reports"]
    assert [row["together"] for row in told["rows"]] == [2550, 4800]


def curvote_advise(*words):
    """Run `curvote advise`."""
    return CliRunner().invoke(app, ["advise", *words])


TASK = ("--clients", "3000", "--features", "4")
BUDGETS = ("--epsilon", "0.01", "--epsilon", "1")


@pytest.fixture(scope="module")
def text():
    """Return what the command says of both budgets."""
    return curvote_advise(*TASK, *BUDGETS).stdout


def test_the_command_tells_a_row_for_each_epsilon(text):
    """In a JSON document and in words: the rule's choice, its noise and its reason."""
    document = json.loads(curvote_advise(*TASK, *BUDGETS, "--json").stdout)
    assert [row["epsilon"] for row in document["rows"]] == [0.01, 1]
    for row in document["rows"]:
        choice = choose_protocol(3000, 4, row["epsilon"])
        assert (row["protocol"], row["arm"]) == (choice.protocol, choice.arm)
        assert row["noise"] == choice.noise
        assert row["reason"] == choice.reason
        assert f"{choice.noise:.2g}" in text
        assert choice.reason.rpartition(": ")[2] in text
        for told in row["direct"].values():
            cell = f"{100 * told['error']:.1f} ± {100 * told['spread']:.1f}"
            ends = f" ({100 * told['low']:.0f}-{100 * told['high']:.0f})"
            assert cell + "*" * told["nothing_gained"] + ends in text
            assert told["low"] <= told["error"] <= told["high"]
    assert "3,000" in text
    assert "* no better than the majority" in text
    assert document["majority"] == 0.5
    assert list(document["best"]) == list(strengths()) == ["weak", "middle", "strong"]


def test_the_command_takes_the_old_name(text):
    """The old name --d gives the same text, and another share another majority."""
    task = ("--epsilon", "0.01", "--positive", "0.7")
    shares = curvote_advise(*TASK, *task).stdout
    assert curvote_advise("--clients", "3000", "--d", "4", *task).stdout == shares
    assert "30.0" in shares
    assert "30.0" not in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--clients", "1", "--features", "4", "--epsilon", "1"), "clients is 1"),
        (("--clients", "9", "--features", "0", "--epsilon", "1"), "features is 0"),
        ((*TASK, "--epsilon", "1", "--epsilon", "0"), "epsilon is 0"),
        ((*TASK, "--epsilon", "nan"), "epsilon is nan"),
        ((*TASK, "--epsilon", "1", "--positive", "1"), "positive is 1"),
        ((*TASK, "--epsilon", "1", "--spread", "0.2"), "--spread is read by"),
        ((*TASK, "--epsilon", "1", "--weak", "0.6"), "--weak is read by"),
        ((*TASK, "--epsilon", "1", "--epsilon", "2", "--best", "0.9"), "2 times"),
    ],
)
def test_what_makes_no_sense_is_refused(words, message):
    """Each message names what was given."""
    error: Any = curvote_advise(*words).exception
    assert isinstance(error, UserError)
    assert message in str(error)


@pytest.mark.parametrize("balanced", [0.0, 0.5, float("nan")])
def test_a_signal_is_between_certain_and_none(balanced):
    """Anything else is a UserError that says so."""
    with pytest.raises(UserError, match="balanced is"):
        Signal(balanced)
