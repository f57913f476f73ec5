"""What the audit's verdicts rest on: bounds, choices, comparisons; and its command."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import typer
from scipy import stats
from typer.testing import CliRunner, Result

from curvote.audit import choice, of_task, release, run, shipped, twins
from curvote.audit.message_subject import message_subject_of
from curvote.audit.verdict import draw_pairs
from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.checks import events, examples, loss_checks
from curvote.checks.events import binary_precision
from curvote.checks.loss_checks import lower_bound
from curvote.checks.subject import ratio_text
from curvote.cli.commands.audit import audit
from curvote.mechanisms import exact, make
from tests.noise import SEED

KEYS = {"mechanism", "params", "claimed", "exact", "exact_ratio", "lower_bound"}
KEYS |= {"confidence", "verdict", "delta", "checks", "caught_by", "seed"}


@pytest.mark.parametrize("alpha", [1e-9, 1e-3, 0.2])
def test_bounds_on_a_proportion_are_clopper_and_pearson_s(alpha: float) -> None:
    """Against scipy's beta quantiles, and in closed form at both ends."""
    n, hits = 50, np.arange(51)
    low, high = events.proportion_bounds(hits, n, alpha)
    assert low[1:] == pytest.approx(stats.beta.ppf(alpha, hits, n - hits + 1)[1:])
    assert high[:-1] == pytest.approx(stats.beta.isf(alpha, hits + 1, n - hits)[:-1])
    assert (low[0], high[-1]) == (0, 1)
    assert high[0] == pytest.approx(1 - alpha ** (1 / n))
    assert low[-1] == pytest.approx(alpha ** (1 / n))


@pytest.mark.parametrize("epsilon", [1e-4, 0.5, 2.0, 10.0, 30.0])
def test_one_threshold_too_many_is_seen(epsilon: float) -> None:
    """The comparison with e^epsilon is exact: one word in 2^64 decides."""
    threshold = exact.logistic_threshold(epsilon)
    ratios = [Fraction(t, (1 << 64) - t) for t in (threshold, threshold + 1)]
    assert [loss_checks.exceeds_exp(ratio, epsilon) for ratio in ratios] == [
        False,
        True,
    ]


def test_an_event_proves_no_more_than_its_draws_say() -> None:
    """The ratio of shares from below; delta is taken off; nothing proves nothing."""
    certain = events.least_epsilon(6000, 1000, 10_000, 0.0, 1e-3)
    assert 1.6 < certain < np.log(6)
    assert events.least_epsilon(6000, 1000, 10_000, 0.1, 1e-3) < certain
    assert events.least_epsilon(0, 1000, 10_000, 0.0, 1e-3) == -np.inf
    assert events.least_epsilon(5, 0, 10_000, 0.1, 1e-3) == -np.inf


def test_the_lower_bound_is_rarely_too_large() -> None:
    """At an error rate of 1/20, 200 audits of a tight mechanism exceed it so often."""
    subject, alpha, audits = shipped("binary_rr", 1.0), 0.05, 200
    proved = [
        lower_bound(subject, draw_pairs(subject, 300, seed), alpha)[0]
        for seed in range(audits)
    ]
    wrong = sum(bound > 1 for bound in proved)
    assert wrong <= stats.binom.isf(1e-6, audits, alpha)
    assert max(proved) > 0.5


def test_a_mean_is_within_its_margin() -> None:
    """The empirical Bernstein margin covers the truth, and shrinks with n."""
    rng = np.random.default_rng(SEED)
    values = rng.uniform(0, 3, (2000, 400))
    margin = loss_checks.bernstein(values, 3.0, 0.05)
    assert (np.abs(values.mean(axis=0) - 1.5) > margin).mean() < 0.05
    assert (loss_checks.bernstein(values[:200], 3.0, 0.05) > margin).all()


def test_fineness_is_the_least_power_of_two_that_makes_a_number_whole() -> None:
    """0 is coarsest; subnormal numbers count too."""
    numbers = np.array([0.0, 1.0, 12.0, 0.5, -0.75, 1 + 2.0**-52, 2.0**-1074])
    assert binary_precision(numbers).tolist() == [-1200, 0, -2, 1, 2, 52, 1074]


def test_a_ratio_is_written_out_while_that_is_short() -> None:
    """Then by 40 digits of its value; none stays none."""
    assert ratio_text(None) is None
    assert ratio_text(Fraction(3, 2)) == "3/2"
    long = ratio_text(Fraction(3**400, 2**600))
    assert long is not None
    assert long.endswith("(40 digits)")
    assert float(long.split()[0]) == pytest.approx(3**400 / 2**600)


@pytest.mark.parametrize("asks", ["report", "vote"])
def test_what_leaves_a_client_passes(asks: str) -> None:
    """Both messages of MRMA, whole: the parts together stay within the budget."""
    (row,) = of_task(examples.example_task("mrma", asks, 1.5), samples=6000)
    assert (row.mechanism, row.verdict) == (f"mrma.{asks}", "pass"), row.checks
    assert row.exact == pytest.approx(1.5, abs=1e-6)
    assert row.lower_bound is not None
    assert 0.3 < row.lower_bound <= row.exact <= 1.5


@pytest.mark.parametrize("name", ["hybrid", "privunit", "square_wave"])
def test_reports_by_other_mechanisms_pass(name: str) -> None:
    """Whatever mechanism a task names."""
    task = examples.example_task("mrma", "report", 2.0)
    named = type(task)(**{**vars(task), "mechanism": name})
    (row,) = run(message_subject_of(named), samples=4000)
    assert row.verdict == "pass", row.checks


def test_a_thousand_reruns_of_a_remembered_release_say_nothing_new() -> None:
    """The stand-in remembers its bytes; one that forgets once is found out."""
    mechanism, truth = make("laplace", epsilon=1.0), np.array([0.25])
    entropy = SeededEntropy(SEED)

    def fresh() -> np.ndarray:
        return mechanism.randomize(truth, entropy)

    kept = fresh()
    assert release.check_reruns(lambda: kept, truth, Budget(1.0)) is None
    calls = iter(range(2000))
    once = release.check_reruns(
        lambda: fresh() if next(calls) == 50 else kept, truth, Budget(1.0)
    )
    assert "2 different outputs in 100 runs spend at least epsilon 2, not 1" in str(
        once
    )
    often = str(release.check_reruns(fresh, truth, Budget(1.0)))
    assert int(often.split(maxsplit=1)[0]) > 90


def curvote_audit(out: Path, *words: str) -> Result:
    """Run `curvote audit` in this process with few draws."""
    app = typer.Typer()
    app.command()(audit)
    few = ("--samples", "4000", "--workers", "1", "--out", str(out))
    return CliRunner().invoke(app, [*words, *few])


def test_the_command_prints_one_json_document(tmp_path: Path) -> None:
    """Every row has the same keys, NaN is nowhere, the figure is drawn."""
    names = ("laplace", "binary_rr", "gaussian", "broken.no_noise")
    result = curvote_audit(tmp_path, *names, "broken.rerandomised_memo", "--json")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout, parse_constant=pytest.fail)
    assert all(set(row) == KEYS for row in rows)
    found = {(row["mechanism"], row["claimed"]): row for row in rows}
    assert found["binary_rr", 0.5]["exact_ratio"].count("/") == 1
    assert found["laplace", 0.5]["exact_ratio"] is None
    assert found["gaussian", 2]["delta"] == 1e-5
    assert found["broken.no_noise", 0.5]["verdict"] == "caught"
    assert found["laplace", 10]["lower_bound"] is None
    assert json.loads((tmp_path / "audit.json").read_text()) == rows
    assert b"broken on purpose" in (tmp_path / "audit.svg").read_bytes()
    assert (tmp_path / "audit.png").stat().st_size > 10_000


def test_the_command_ends_with_a_count(tmp_path: Path) -> None:
    """A table for people, at the chosen levels, and exit 0 where all is well."""
    names = ("k_rr", "broken.same_seed", "--epsilon", "1", "--epsilon", "3")
    result = curvote_audit(tmp_path, *names)
    assert result.exit_code == 0, result.output
    last = result.stdout.splitlines()[-1]
    assert last == "2 claims hold, 1 broken on purpose were caught"
    assert "independence" in result.stdout


def test_a_missed_twin_fails_the_command(tmp_path, monkeypatch):
    """An honest mechanism in the gallery is a twin that cannot be caught."""
    honest = twins.Twin(lambda epsilon: shipped("laplace", epsilon), 4000)
    monkeypatch.setattr(twins, "TWINS", {"no_noise": honest})
    result = curvote_audit(tmp_path, "broken.no_noise")
    assert result.exit_code == 1
    assert result.stdout.endswith("0 broken on purpose were caught, 1 missed\n")


def test_a_violated_mechanism_fails_the_command(tmp_path, monkeypatch):
    """And the table says which check found what."""
    monkeypatch.setattr(exact, "logistic_threshold", lambda *_, **__: 15 << 60)
    result = curvote_audit(tmp_path, "binary_rr", "--epsilon", "0.5")
    assert result.exit_code == 1
    assert "exact violated: the worst ratio exceeds" in result.stdout
    assert result.stdout.splitlines()[-1].endswith("1 violated")


def test_an_unknown_name_is_a_user_error(tmp_path: Path) -> None:
    """With the close one."""
    for given, meant in (("laplce", "laplace"), ("broken.noise", "broken.no_noise")):
        error = curvote_audit(tmp_path, given).exception
        assert isinstance(error, UserError)
        assert f"Did you mean '{meant}'?" in str(error)
    assert set(choice.match_names([])) >= {"laplace", "mrma.vote", "broken.no_noise"}


def test_a_pipeline_s_clients_are_audited_as_they_send(project, tmp_path):
    """One row for each epsilon and message, kept for the report."""
    words = ("--pipeline", "tiny", "--project", str(project.root), "--json")
    result = curvote_audit(tmp_path / "out", *words)
    rows = json.loads(result.stdout)
    assert {row["mechanism"] for row in rows} == {"mrma.report", "mrma.vote"}
    assert {row["verdict"] for row in rows} == {"pass"}
    assert result.exit_code == 0
    (kept,) = (project.state / "audits").glob("tiny.json")
    assert [*json.loads(kept.read_text())["rows"].values()] == rows
