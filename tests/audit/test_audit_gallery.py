"""The audit's two errors: a broken promise is caught, a kept one is not accused."""

from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from curvote.audit import choice, release_checks, run, shipped
from curvote.audit.command_release import CommandRelease
from curvote.audit.message_subject import message_subject_of
from curvote.audit.release import TableRelease
from curvote.base.classes import Classes
from curvote.base.entropy import SeededEntropy
from curvote.checks import examples
from curvote.checks.mechanism_subject import subject_of
from curvote.checks.subject import BROKEN
from curvote.mechanisms import laplace, names, randomized_response
from curvote.mechanisms.exact import DiscreteLaplace
from curvote.systems.labels.messages import Task
from tests.audit.gallery import TWINS, Doubled, gallery, gallery_names
from tests.audit.message_twins import AlibiHalfScale, OneBitCounted
from tests.audit.release_twins import COMMANDS

# Enough draws to catch nearly every fault; `make faults` takes those of FULL.
SAMPLES, FULL = 4000, 15_000
# What seeds of a command's noise are made of, for whoever knows that.
KNOWN = ("task", "record")
FEW_RUNS = 40  # of a small table, whose twins are caught by words and orders
# The checks that each fault was made for; other checks may see it too.
CAUGHT_BY = {
    "sensitivity_halved": {"exact", "statistical", "support"},
    "budget_not_split": {"exact", "statistical", "support"},
    "report_budget_not_split": {"exact", "statistical"},
    "float_laplace": {"statistical", "support"},
    "min_max_2023": {"statistical", "law"},
    "unary_full_epsilon": {"exact", "statistical"},
    "rerandomised_memo": {"reruns"},
    "raw_echo": {"statistical", "support"},
    "no_noise": {"statistical", "law"},
    "off_by_one_threshold": {"exact"},
    "off_by_one_comparison": {"sampler"},
    "same_seed": {"independence"},
    "shared_noise": {"independence", "law"},
    "repeated_blocks": {"independence"},
    "passes_nan": {"inputs"},
    "missing_for_large": {"statistical", "support"},
    "no_clipping": {"inputs", "statistical"},
    "subset_with_label": {"statistical", "law"},
    "gaussian_halved": {"law"},
    "naked_label": {"statistical", "law"},
    "quiet_label_bin": {"interior"},
    "vote_twice": {"exact", "statistical"},
    "judgement_twice": {"exact", "statistical"},
    "quiet_where_right": {"statistical", "law"},
    "answer_not_split": {"fields", "statistical"},
    "answer_twice": {"fields", "statistical"},
    "quiet_where_sure": {"statistical", "law"},
    "judges_both": {"exact", "statistical"},
    "whitened_length": {"statistical", "support"},
    "direction_twice": {"exact", "statistical"},
    "label_beside": {"inputs", "law"},
    "label_beside_code": {"exact", "statistical"},
    "corner_of_wrong_length": {"statistical", "support"},
    "gradient_unclipped": {"statistical", "support"},
    "bins_from_data": {"others", "law"},
    "two_features": {"exact", "support"},
    "half_noise_for_few": {"batches", "answers"},
    "exact_half_noise_for_few": {"batches", "answers"},
    "quiet_bin": {"interior", "answers"},
    "quiet_at_tenths": {"interior"},
    "half_noise_in_a_bin": {"interior"},
    "quiet_where_clipped": {"interior"},
    "lagged_noise": {"lags"},
    "one_noise_for_two": {"lags"},
    "coarse_threshold": {"answers"},
    "coarse_rounding": {"answers"},
    "halved_threshold": {"exact"},
    "words_by_label": {"work"},
    "labels_alibi_half_scale": {"pair", "statistical", "support"},
    "labels_one_bit_counted": {"channel", "pair", "statistical"},
    "labels_code_each_epoch": {"fields", "statistical"},
    "labels_prior_from_labels": {"statistical", "law"},
    "labels_nudged_prior": {"path"},
    "labels_both_rounds": {"fields", "statistical"},
    "labels_label_in_features": {"fields", "statistical"},
    "labels_word_beside": {"fields", "statistical"},
    "labels_word_twice": {"fields", "exact"},
    "large_share_not_split": {"split"},
    "seeded_by_clock": {"source", "words", "forks"},
    "seeded_by_process": {"source", "words", "forks"},
    "seeded_by_task": {"source", "words", "forks"},
    "seeded_by_record": {"source", "words", "forks"},
    "stretched_seed": {"words"},
    "words_of_32_bits": {"words"},
    "words_of_53_bits": {"words"},
    "shared_pool": {"source", "words", "forks"},
    "repeated_words": {"words"},
    "sorted_by_label": {"order"},
    "not_shuffled": {"order"},
    "seeded_order": {"order"},
    "few_not_shuffled": {"order"},
    "order_of_64_bits": {"order"},
    "telling_form": {"observables"},
    **{
        f"client_{way}_seeded_by_{what}": {"words"}
        for way in COMMANDS
        for what in KNOWN
    },
    "client_labels_same_for_two": {"words"},
    "client_report_field_beside": {"envelope"},
    "client_vote_field_beside": {"envelope"},
    "client_release_unpadded": {"observables"},
    "client_label_written_anew": {"again"},
    "client_release_written_early": {"refusal"},
    "transfer_fresh_noise": {"queries"},
    "transfer_centring_unscaled": {"sensitivity", "delta"},
    "transfer_classes_without_sqrt2": {"sensitivity", "delta"},
    "transfer_steps_forgotten": {"sensitivity", "delta"},
    "transfer_products_too_long": {"sensitivity", "delta"},
    "transfer_bounds_from_records": {"sensitivity", "delta"},
    "transfer_delta_ignored": {"exact", "delta"},
    "transfer_visited_cells_only": {"statistical", "law"},
    "transfer_rate_beside": {"fields", "statistical"},
    "transfer_bandwidths_full_budget": {"sensitivity", "delta"},
    "transfer_printed_noise": {"exact", "delta"},
}
# Exact checks, which take no draws; all are looked at with draws by `make faults`.
LAW = {"exact", "channel", "pair", "sampler", "inputs", "fields", "path", "split"}
LAW |= {"others", "sensitivity", "delta", "streams", "queries", "reruns"}
# Small differences take more draws, as do rare events and blocks of 65,536 clients.
SMALL = (
    *("report_budget_not_split", "direction_twice", "label_beside_code"),
    *("quiet_at_tenths", "quiet_where_clipped"),
    *("labels_code_each_epoch", "labels_both_rounds", "labels_word_twice"),
)
MORE = dict.fromkeys(SMALL, FULL)
MORE |= {"raw_echo": 120_000, "repeated_blocks": 80_000, "gaussian_halved": 80_000}
# A bin of width .01 holds one input of 200.
MORE |= {"quiet_bin": 60_000, "quiet_label_bin": 60_000, "half_noise_in_a_bin": 150_000}


def test_every_fault_says_what_should_catch_it() -> None:
    """The table above is complete, and each mechanism has a twin.

    Also where twins that a law gives away are not drawn: no check is left untried.
    """
    assert set(CAUGHT_BY) == set(TWINS)
    quick = [checks & LAW or checks for checks in CAUGHT_BY.values()]
    assert set().union(*quick) == set().union(*CAUGHT_BY.values())
    doubled = {f"{BROKEN}doubled_{name}" for name in names()}
    assert doubled < set(gallery_names())
    assert not set(gallery_names()) & set(names())


@pytest.mark.parametrize(
    "samples", [SAMPLES, pytest.param(FULL, marks=pytest.mark.faults)]
)
@pytest.mark.parametrize("name", list(TWINS))
def test_each_fault_is_caught_by_the_check_made_for_it(name: str, samples: int) -> None:
    """And the row says so."""
    twin = gallery(BROKEN + name)
    if isinstance(twin, TableRelease) and samples < FULL:
        twin = replace(twin, runs=FEW_RUNS)
    if isinstance(twin, CommandRelease) and samples < FULL:
        # Each call of a command is a tenth of a second: those of one check do here.
        with closing(twin):
            checks = release_checks.named_checks(twin, samples)
            for check in CAUGHT_BY[name]:
                assert checks[check](twin, 1) is not None
        return
    checks, draws = CAUGHT_BY[name], max(samples, MORE.get(name, 0))
    if checks & LAW and samples < FULL:
        checks, draws = checks & LAW, 0
    (row,) = run(twin, samples=draws)
    assert row.verdict == "caught"
    assert set(row.caught_by) >= checks, row.checks
    assert row.to_json()["mechanism"] == BROKEN + name


@pytest.mark.parametrize("name", names())
def test_a_sampler_that_spends_twice_its_law_is_caught(name: str) -> None:
    """For every mechanism, though the declared loss is right."""
    # The Gaussian's law is further from its double's only in the tails.
    samples = FULL if name == "gaussian" else SAMPLES
    (row,) = run(gallery(f"{BROKEN}doubled_{name}", 1.0), samples=samples)
    assert row.verdict == "caught"
    assert row.exact is not None
    assert row.exact <= 1
    # The Gaussian's delta hides what draws could prove; its law gives it away.
    check = "law" if name == "gaussian" else "statistical"
    assert check in row.caught_by


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_shipped_mechanisms_pass(name: str, epsilon: float) -> None:
    """All checks, and the draws prove no more than the law loses."""
    (row,) = run(shipped(name, epsilon), samples=SAMPLES)
    assert row.verdict == "pass", row.checks
    assert row.exact is not None
    assert row.lower_bound is not None
    assert row.lower_bound <= row.exact + 1e-9 <= epsilon + 2e-9
    assert set(row.checks.values()) == {"ok"}


@pytest.mark.parametrize("name", choice.wide_names())
@pytest.mark.parametrize("epsilon", [0.5, 10.0])
def test_encoders_of_two_and_of_a_hundred_classes_pass(name, epsilon) -> None:
    """With the worst pair in the row: both of its bits, and its ratio as a fraction."""
    (row,) = run(shipped(name, epsilon), samples=2000)
    assert row.verdict == "pass", row.checks
    base, _, n_classes = name.partition("@")
    assert row.params["n_classes"] == int(n_classes)
    assert (row.exact_ratio is None) == (base == "alibi")
    assert ("pair" in row.params) == (base != "rr_with_prior")


@pytest.mark.parametrize("name", examples.code_names())
@pytest.mark.parametrize("epsilon", [0.5, 10.0])
def test_codes_of_labels_pass(name: str, epsilon: float) -> None:
    """Messages of one round and of two, whatever the prior of a record is."""
    (row,) = run(shipped(name, epsilon), samples=SAMPLES)
    assert row.verdict == "pass", row.checks
    assert row.exact == pytest.approx(epsilon, abs=1e-6)
    assert row.lower_bound is not None
    assert 0 <= row.lower_bound <= epsilon


def test_codes_by_other_encoders_pass() -> None:
    """Whatever mechanism a task names, as a pipeline's tasks do."""
    for encoder in ("alibi", "vector", "hadamard", "oue", "rr"):
        task = Task(Classes("abcdefgh"), 1.0, encoder)
        (row,) = run(message_subject_of(task), samples=3000)
        assert row.verdict == "pass", row.checks
        assert row.params["mechanism"] == task.encoder


@pytest.mark.parametrize("base", ["unary_symmetric", "alibi", "subset_selection"])
def test_twins_of_a_hundred_classes_are_caught(base) -> None:
    """Where no channel is written out, the law of two bits still gives them away."""
    honest = shipped(f"{base}@100", 1.0)
    secret = shipped(f"{base}@100", 2.0).mechanism
    facts = honest.mechanism, f"{BROKEN}wide", honest.params, honest.budget
    (row,) = run(Doubled(*facts, secret=secret), samples=SAMPLES)
    assert {"statistical", "law"} <= set(row.caught_by), row.checks
    broken = {"unary_symmetric": OneBitCounted, "alibi": AlibiHalfScale}
    if base in broken:
        twin = subject_of(broken[base](epsilon=1.0, n_classes=100), f"{BROKEN}wide")
        (row,) = run(twin, samples=0)
        assert row.caught_by == ("pair",)


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("epsilon", [1e-3, 20.0, 100.0])
def test_exact_parts_pass_far_from_1(name: str, epsilon: float) -> None:
    """Without a draw; where the law is that of few integers too."""
    (row,) = run(shipped(name, epsilon), samples=0)
    assert row.verdict == "pass", row.checks
    assert (row.lower_bound, row.confidence) == (None, None)


@pytest.mark.parametrize(
    ("name", "module", "attribute", "value", "check"),
    [
        ("laplace", laplace, "RANGE_BITS", laplace.GRID_BITS, "exact"),
        (
            "binary_rr",
            randomized_response.exact,
            "logistic_threshold",
            lambda _: 3 << 62,
            "exact",
        ),
        (
            "laplace",
            DiscreteLaplace,
            "sample",
            lambda self, n, entropy: np.zeros(n, dtype=np.int64),
            "law",
        ),
    ],
)
def test_a_shipped_mechanism_that_breaks_is_violated(
    monkeypatch: pytest.MonkeyPatch, name, module, attribute, value, check
) -> None:
    """The same subject that passes, after one line of the product was changed."""
    monkeypatch.setattr(module, attribute, value)
    (row,) = run(shipped(name, 0.5), samples=6000)
    assert row.verdict == "violated"
    assert check in row.caught_by


def test_one_seed_gives_one_bound_and_seeds_differ() -> None:
    """The audit can be repeated."""
    bounds = [
        run(shipped("laplace", 1.0), samples=3000, seed=seed)[0].lower_bound
        for seed in (1, 1, 2)
    ]
    assert bounds[0] == bounds[1] != bounds[2]


def test_a_twin_declares_what_it_does_not_do() -> None:
    """A gallery of honest mechanisms would prove nothing."""
    twin = gallery(f"{BROKEN}no_noise")
    out = twin.draw(np.array(0.5), 3, SeededEntropy(0))
    assert out.tolist() == [0.5, 0.5, 0.5]
