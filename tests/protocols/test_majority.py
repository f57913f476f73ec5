"""Protocol majority on plain tables: noised labels elect a constant, whatever z is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.checks.word_checks import RefusingEntropy
from curvote.curves.basis import identity
from curvote.curves.encoding import Encoding
from curvote.mechanisms.randomized_response import BinaryRR
from curvote.messages.message import ClientData, parse_message, payload_at
from curvote.messages.roles import split_roles
from curvote.pipeline.store.arrow import to_arrow
from curvote.systems.mrma.system import SYSTEM as MRMA
from curvote.systems.references.messages import Label
from curvote.systems.references.stages import elect_class
from curvote.systems.references.system import LABELS, SYSTEM
from tests.memory import Made, Memory, do
from tests.rounds import REPORTS

HUGE = 200.0
SIZES = {"public": 0, "train": 300, "vote": 500, "test": 100}
N, D = sum(SIZES.values()), 3
PARAMS: dict[str, Any] = {
    "seed": 3,
    "clients": SIZES,
    "source.groups": None,
    "epsilon": HUGE,
    "replicates": 1,
    "histogram.bins": 2,
    "published.histogram": False,
}
TASK = replace(REPORTS, protocol="majority", mechanism=BinaryRR.name)
MESSAGE = Label()


def people(share: float, z: float | None = None, seed: int = 1) -> Memory:
    """Return clients, a ``share`` of them positive; all have the same z, if given."""
    rng = np.random.default_rng(seed)
    own = rng.uniform(-1, 1, (N, D)) if z is None else np.full((N, D), z)
    label = (np.arange(N) < round(share * N)).astype(int)
    rows = {"label": label, "z": own, "coefficients": own}
    encoding = Encoding(identity(D), "none").to_json()
    facts = {"d": D, "encoding": encoding, "classes": ["-1", "+1"], "roughness": []}
    return Memory.of(facts, encoded=[rows])


def chain(project: Memory, **changes: Any) -> Made:
    """Run every stage that follows the encoding."""
    made = {"project": project}
    for stage in SYSTEM.stages[2:]:
        made[stage.name] = do(stage, made, PARAMS | changes)
    return made


def known(labels: Any, z: float = 0.25) -> ClientData:
    """Return clients with these labels."""
    own = np.full((np.size(labels), 4), z)
    return ClientData(own, own, np.asarray(labels, dtype=float))


# ------------------------------------------------------------------------ the chain
@pytest.mark.parametrize(("share", "place"), [(0.3, 0), (0.7, 1), (1.0, 1)])
def test_the_larger_class_is_elected(share: float, place: int) -> None:
    """Without noise to speak of: the place of the larger class."""
    made = chain(people(share))
    found = made["aggregate"].columns("elected", (0,))
    assert found["place"] == [place]
    assert found["n"] == [SIZES["train"] + SIZES["vote"]]


@given(st.lists(st.sampled_from([-1, 1]), min_size=1, max_size=50))
def test_the_election_counts(labels: list[int]) -> None:
    """+1 wins with more than half of the labels; a tie is -1, as everywhere."""
    assert elect_class(np.array(labels), 2) == (2 * labels.count(1) > len(labels))


@pytest.mark.parametrize("epsilon", [0.5, HUGE])
def test_z_is_never_looked_at(epsilon: float) -> None:
    """Whatever the numbers are: the same labels and classifier."""
    first, *others = (
        [made[name].tables for name in ("privatize", "aggregate")]
        for z in (None, 0.5, -1e300)
        for made in [chain(people(0.4, z), epsilon=epsilon)]
    )
    for tables in others:
        np.testing.assert_equal(tables, first)


def test_labels_are_kept_as_often_as_the_mechanism_says() -> None:
    """Of equal labels a binomial number is kept; chance of a failure below 1e-6."""
    n, keep = SIZES["train"] + SIZES["vote"], BinaryRR(epsilon=1.0).keep
    table = chain(people(1.0), epsilon=1.0)["privatize"].columns("labels", (0,))
    kept = int((table["label"] == 1).sum())
    assert binom.ppf(2.5e-7, n, keep) <= kept <= binom.isf(2.5e-7, n, keep)


def test_the_table_of_labels_tells_labels_alone() -> None:
    """One column that keeps its contract, in an order that tells no role."""
    project = people(0.5)
    roles = split_roles(PARAMS["seed"], 0, N, SIZES)
    project.columns("encoded", (0,))["label"][:] = 0
    project.columns("encoded", (0,))["label"][roles["train"]] = 1
    table = chain(project)["privatize"].columns("labels", (0,))
    kept = to_arrow(LABELS, ("replicate",), (0,), table)
    assert kept.column_names == ["replicate", "label"]
    assert (table["label"] == 1).sum() == SIZES["train"]
    assert not (table["label"][: SIZES["train"]] == 1).all()


@pytest.mark.parametrize("epsilon", [0.1, HUGE])
def test_the_only_row_is_the_baseline_of_every_protocol(epsilon: float) -> None:
    """The method's error is the one that mrma's chain states beside its own."""
    made = chain(people(0.45), epsilon=epsilon)
    (baseline,) = (stage for stage in MRMA.stages if stage.module.endswith(":baseline"))
    beside = do(baseline, made, PARAMS | {"epsilon": epsilon})
    (found,), (expected,) = (one.each("scores") for one in (made["report"], beside))
    assert found["method"].tolist() == ["majority"]
    assert found["metric"].tolist() == ["misclassification"]
    assert found["value"][0] == expected["value"][expected["method"] == "majority"]


# ----------------------------------------------------------------------- the message
def test_everybody_sends_one() -> None:
    """Who trains and who votes, as the study's table has it."""
    assert MESSAGE.senders.count(SIZES) == SIZES["train"] + SIZES["vote"]
    assert MESSAGE.stage == "privatize"


@pytest.mark.parametrize(
    "bad",
    [
        known([np.nan]),
        known([-1.0]),
        known([1.0, 2.0]),
        known([1.0], z=np.nan),
        replace(known([1.0]), labels=np.ones(2)),
    ],
)
def test_what_is_no_record_is_refused_before_a_word_is_drawn(bad: ClientData) -> None:
    """Labels of no class, broken numbers, more labels than records."""
    with pytest.raises(UserError):
        MESSAGE.draw(TASK, bad, RefusingEntropy())


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 10.0, 60.0])
def test_the_declared_loss_is_that_of_the_law_and_within_epsilon(
    epsilon: float,
) -> None:
    """Over both labels and both outputs, the largest log-ratio is what is declared."""
    task = replace(TASK, epsilon=epsilon)
    outputs = {"label": np.array([-1, 1], dtype=np.int8)}
    found = MESSAGE.log_ratio(task, known([1.0, 1.0]), known([0.0, 0.0]), outputs)
    worst = MESSAGE.max_privacy_loss(task)
    assert 0 < worst <= epsilon
    np.testing.assert_allclose(np.abs(found), worst, rtol=1e-9)


@pytest.mark.parametrize(
    "forged",
    [{"label": 0}, {"label": 2}, {"label": True}, {"label": 1.0}, {"label": None}, {}],
)
def test_a_forged_message_is_refused(forged: dict[str, Any]) -> None:
    """A label of another value or kind, none, or something beside it."""
    for payload in (forged, {"label": 1} | {"z": [0.5]}):
        with pytest.raises(UserError, match="report"):
            parse_message(TASK, None, payload)


def test_impossible_labels_are_told_apart() -> None:
    """Row by row: -1 and +1 can have been sent, nothing else."""
    found = MESSAGE.possible_mask(TASK, {"label": np.array([1, 0, -1, 3])})
    np.testing.assert_array_equal(found, [True, False, True, False])


def test_an_honest_message_is_taken_and_its_order_is_lost() -> None:
    """What a client draws passes the server's check; a table is a set of labels."""
    sent = MESSAGE.draw(TASK, known([1.0, 0.0, 1.0]), SeededEntropy(5))
    for index in range(3):
        parse_message(TASK, None, payload_at(sent, index))
    table = MESSAGE.collect(TASK, sent)
    assert len(table["label"]) == 3
    assert elect_class(table["label"], 2) == elect_class(table["label"][::-1], 2)
