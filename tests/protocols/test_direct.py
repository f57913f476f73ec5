"""Protocol `direct`: who reports when, and its stages on tables in memory."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.chain.lookup import find_system
from curvote.chain.stage import Columns, Stage
from curvote.client.report import DirectionReporter
from curvote.curves.basis import identity
from curvote.curves.direction import Whitening
from curvote.curves.encoding import RESCALING_CONSTANTS, Encoding
from curvote.ledger.book import Ledger
from curvote.messages import arms
from curvote.messages.message import (
    ClientData,
    learning_messages,
    message_of,
    messages_of,
)
from curvote.messages.roles import EVERYBODY, ROLES, split_roles
from curvote.pipeline.config.project import Project
from curvote.pipeline.run.results import final_model, production_outcomes
from curvote.systems.common.study import draw_messages, study_clients, study_task
from curvote.systems.direct.messages import Refinement
from curvote.wire.task import Task
from tests import plain, production
from tests.exchange import FAR, NAME, Server, answers
from tests.federation.test_exchange import blocked, some_clients
from tests.memory import Made, Memory, do, here
from tests.noise import SEED

D, REPLICATES = 3, 2
CLIENTS = {"public": 0, "train": 6000, "vote": 14_000, "test": 4000}
PARAMS: dict[str, Any] = {
    "seed": SEED,
    "clients": CLIENTS,
    "source.groups": None,
    "replicates": REPLICATES,
    "protocol": "direct",
    "label": "direct",
    "direct.intercept": "auto",
    "source.balance": None,
    "epsilon": 8.0,
}
# What Gaussian numbers g become: as they are, or correlated and off centre.
PLAIN = np.eye(D), np.zeros(D)
SKEWED = (
    np.array([[1, 0, 0], [0.5, 0.87, 0], [0.4, 0.2, 0.9]]),
    np.array([0.3, -0.3, 0]),
)
SLOPE = np.array([4.0, -4.0, 2.0])
SENT = ("privatize", "refine")


def crowd(problem: tuple[np.ndarray, np.ndarray], replicate: int) -> Columns:
    """Return encoded clients whose label follows a logistic law of g."""
    rng, n = np.random.default_rng([SEED, replicate]), sum(CLIENTS.values())
    g = rng.normal(size=(n, D))
    label = rng.random(n) < 1 / (1 + np.exp(-g @ SLOPE))
    z, ids = g @ problem[0].T + problem[1], np.arange(n)
    own = {"client_id": ids, "group": ids, "label": label.astype(int)}
    return own | {"coefficients": z, "z": z, "clipped": np.zeros(n, dtype=int)}


def stages(arm: str) -> dict[str, Stage]:
    """Return the stages of an arm that follow the encoding."""
    name = arms.protocol_of(arm)
    return {stage.name: stage for stage in find_system(name).stages[2:]}


def drawn(stage: Stage, made: Made, params: dict[str, Any]) -> Memory:
    """Run a stage for all replicates."""
    places = [(replicate,) for replicate in range(REPLICATES)]
    return do(stage, made, params, places, (REPLICATES,))


@lru_cache
def study(arm: str, *, skewed: bool = False) -> Made:
    """Return what each stage made of one of the two problems."""
    encoded = [crowd(SKEWED if skewed else PLAIN, r) for r in range(REPLICATES)]
    encoding = Encoding(identity(D), "none").to_json()
    facts = {"d": D, "encoding": encoding, "classes": ["-1", "+1"], "roughness": []}
    made = {"project": Memory.of(facts, encoded=encoded)}
    for name, stage in stages(arm).items():
        made[name] = drawn(stage, made, PARAMS | {"direct.arm": arm})
    return made


def excess(arm: str, *, skewed: bool) -> float:
    """Return by how much an arm's mean error exceeds that of the best line."""
    found, best = [], []
    shape, centre = SKEWED if skewed else PLAIN
    line = np.linalg.solve(shape.T, SLOPE)
    every = study(arm, skewed=skewed)["report"].each("scores")
    for replicate, scores in enumerate(every):
        clients = crowd((shape, centre), replicate)
        n = len(clients["label"])
        test = split_roles(SEED, replicate, n, CLIENTS)["test"]
        guess = (clients["z"][test] - centre) @ line > 0
        best.append(np.mean(guess != clients["label"][test]))
        found.append(scores["value"][scores["method"] == arm][0])
    return float(np.mean(found) - np.mean(best))


@given(train=st.integers(0, 60), vote=st.integers(0, 60), test=st.integers(0, 9))
def test_two_rounds_ask_everybody_once(train: int, vote: int, test: int) -> None:
    """The two parts have no client in common, and are all who train or vote."""
    sizes = dict.fromkeys(ROLES, 0) | {"train": train, "vote": vote, "test": test}
    roles = split_roles(SEED, 0, sum(sizes.values()), sizes)
    senders = [one.senders for one in learning_messages("direct_two").values()]
    first, second = (one.rows(roles).tolist() for one in senders)
    assert not set(first) & set(second)
    assert sorted(first + second) == sorted([*roles["train"], *roles["vote"]])
    counts = [one.count(sizes) for one in senders]
    assert counts == [len(first), len(second)]
    assert EVERYBODY.count(sizes) == sum(counts)
    assert abs(len(first) - arms.FIRST_ROUND_SHARE * (train + vote)) <= 0.5


@pytest.mark.parametrize("arm", ["mean", "joint", "two"])
def test_what_reaches_the_server_names_nobody(arm: str) -> None:
    """Noised vectors of possible length and the server's own numbers, nothing else."""
    made, columns = study(arm), {"direction", "matrix", "centre", "coef"}
    for name in made.keys() - {"project", "report"}:
        for table in made[name].tables.values():
            assert all(
                set(one) <= columns | {"intercept", "n"} for one in table.values()
            )
    given = arms.directions_from_params(D, made["privatize"].metadata["params"])
    reporter = DirectionReporter.build(given, PARAMS["epsilon"])
    sent = [made[name].each("directions") for name in made.keys() & {*SENT}]
    assert all(
        reporter.possible(one["direction"]).all() for each in sent for one in each
    )
    counts = [len(each[0]["direction"]) for each in sent]
    assert sum(counts) == EVERYBODY.count(CLIENTS)


def test_reports_stand_in_random_order() -> None:
    """A client's row says nothing: row by row, reports do not fit their senders."""
    made = study("mean")
    clients = made["project"].columns("encoded", (0,))
    rows = EVERYBODY.rows(split_roles(SEED, 0, len(clients["label"]), CLIENTS))
    given = arms.directions_from_params(D, made["privatize"].metadata["params"])
    own = given.vectors(clients["z"][rows], np.where(clients["label"][rows], 1.0, -1.0))
    found = made["privatize"].columns("directions", (0,))["direction"]
    around = found.mean(axis=0) @ own.mean(axis=0)
    noise = np.linalg.norm(found, axis=1)[0] / np.sqrt(len(rows))
    assert abs(np.mean(np.sum(found * own, axis=1)) - around) < 6 * noise
    assert 1 - around > 6 * noise  # what it would be in the senders' own order


@pytest.mark.parametrize("arm", arms.LABEL_SHARES)
def test_with_many_clients_and_much_budget_every_arm_is_the_best_line(arm: str) -> None:
    """Within 2 points on centred, uncorrelated numbers."""
    assert excess(arm, skewed=False) < 0.02


@pytest.mark.parametrize("arm", arms.LABEL_SHARES)
def test_only_the_second_moment_sees_correlation_and_centre(arm: str) -> None:
    """Where numbers hang together, `joint` and `two` stay within 2 points."""
    far = excess(arm, skewed=True)
    assert far > 0.05 if arm == "mean" else far < 0.02


def test_whitening_takes_centre_and_correlation_away() -> None:
    """Not all, since u divides by a length: a third at least of what is largest."""
    made = study("two", skewed=True)
    for replicate in range(REPLICATES):
        z = made["project"].columns("encoded", (replicate,))["z"]
        white = Whitening(**made["whiten"].columns("whitening", (replicate,))).apply(z)
        both = np.array([(_correlation(x), _centre(x)) for x in (z, white)])
        assert (both[1] < 2 / 3 * both[0]).all()


def _correlation(z: np.ndarray) -> float:
    return float(np.abs(np.corrcoef(z.T) - np.eye(D)).max())


def _centre(z: np.ndarray) -> float:
    return float(np.abs(z.mean(axis=0) / z.std(axis=0)).max())


@pytest.mark.parametrize("arm", arms.LABEL_SHARES)
def test_scores_are_the_arm_beside_the_majority(arm: str) -> None:
    """One classifier of everybody's reports in each replicate."""
    made = study(arm)
    for replicate, scores in enumerate(made["report"].each("scores")):
        methods = ["majority", arm, *["majority"] * 2, *[arm] * 2]
        assert scores["method"].tolist() == methods
        ranked = ["balanced_error", "auc"]
        assert scores["metric"].tolist() == ["misclassification"] * 2 + ranked * 2
        n = made["aggregate"].columns("classifier", (replicate,))["n"]
        assert n.tolist() == [EVERYBODY.count(CLIENTS)]


def test_a_seed_repeats_the_noise_and_another_does_not() -> None:
    """Nor do replicates share it."""
    made, params = study("two"), PARAMS | {"direct.arm": "two"}
    first, stage = made["privatize"], stages("two")["privatize"]
    same, other = (drawn(stage, made, params | {"seed": s}) for s in (SEED, SEED + 1))

    def sent(one: Memory, replicate: int = 0) -> np.ndarray:
        return one.columns("directions", (replicate,))["direction"]

    assert np.array_equal(sent(first), sent(same))
    for another in (sent(other), sent(first, 1)):
        assert not np.isin(sent(first), another).any()


def test_rounds_share_no_noise() -> None:
    """What the second round sends is not what its clients would with the first's."""
    made, kind = study("two"), Refinement()
    place = here(stages("two")["refine"], made, PARAMS | {"direct.arm": "two"})
    clients = study_clients(place)
    rows = place.generator("shuffle").permutation(kind.senders.rows(clients.roles))
    found = made["refine"].columns("directions", (0,))["direction"]
    for stage, same in (("refine", True), ("privatize", False)):
        own = kind, study_task(place, kind), clients.data_of(rows)
        again = draw_messages(place, *own, stage)["direction"]
        assert np.isin(found, again).all() == same


ENCODING = Encoding(identity(D), "none")


def stated(arm: str) -> Task:
    """Return what a configuration says of the first round of an arm."""
    name = arms.protocol_of(arm)
    own = {"direct.arm": arm, "direct.intercept": "auto"}
    terms = messages_of(name)["report"].terms(own.__getitem__, ENCODING)
    return Task(ENCODING, ("no", "yes"), 1.0, name, "report", **terms)


def known(n: int, value: float = 0.3, label: float = 1.0) -> ClientData:
    """Return n clients with the same record."""
    z = np.full((n, D), value)
    return ClientData(z, z, np.full(n, label))


@pytest.mark.parametrize("rescale", RESCALING_CONSTANTS)
@pytest.mark.parametrize("arm", arms.LABEL_SHARES)
def test_an_arm_is_what_its_task_publishes(arm: str, rescale: str) -> None:
    """The vectors survive the way through a task's parameters, for every rescaling."""
    made = arms.make_directions(arm, D, rescale, "auto")
    told = json.loads(json.dumps(arms.directions_to_params(made)))
    assert arms.directions_from_params(D, told) == made
    assert made.share == arms.LABEL_SHARES[arm]
    assert arms.make_directions(arm, D, rescale, 0.25).intercept == 0.25


def test_arms_out_of_range_are_refused() -> None:
    """An unknown arm, and an intercept that is no number above 0."""
    with pytest.raises(UserError, match="arm is 'three'"):
        arms.make_directions("three", D, "none", "auto")
    with pytest.raises(UserError, match="intercept"):
        arms.make_directions("mean", D, "none", 0.0)


def test_a_refinement_speaks_of_whitened_numbers() -> None:
    """Of ``matrix`` (z - ``centre``), with the label as it is."""
    refinement = messages_of("direct_two")["refinement"]
    task = refinement.nominal_task(stated("two"))
    made = Whitening(*(np.array(task.params[name]) for name in ("matrix", "centre")))
    given = arms.directions_from_params(D, task.params).whitened
    reporter = DirectionReporter.build(given, task.epsilon)
    one, other = known(50), known(50, -0.5)
    white, far = ((made.apply(x.z), x.signs) for x in (one, other))
    sent = message_of(task).draw(task, one, SeededEntropy(SEED))
    direction = sent["direction"]
    assert np.array_equal(direction, reporter.release(*white, SeededEntropy(SEED)))
    loss = message_of(task).log_ratio(task, one, other, sent)
    assert np.array_equal(loss, reporter.log_ratio(white, far, direction))


DIRECT = {
    "protocol": "direct",
    "project": {"basis": "bspline", "size": 4, "rescale": "standard"},
    "clients": {"train": 60, "vote": 80},
}


def arm(name: str) -> dict[str, object]:
    """Return a pipeline's changes that make it this arm."""
    return DIRECT | {"direct": {"arm": name}}


def members(project: Project) -> list[set[int]]:
    """Return who released what the ledger has confirmed."""
    entries = production.confirmed(project)
    with Ledger(project.ledger) as ledger:
        return [set(ledger.members(e.release).tolist()) for e in entries]


@pytest.mark.parametrize(("name", "rounds"), [("joint", [140]), ("two", [42, 98])])
def test_every_client_releases_once(
    tmp_path: Path, name: str, rounds: list[int]
) -> None:
    """A repeated run gives the same bytes and spends nothing."""
    project = production.write(tmp_path, **arm(name))
    made = production.run(project)
    who = members(project)
    assert [len(group) for group in who] == rounds
    assert len(set().union(*who)) == sum(rounds)
    before = production.bytes_of(project, made)
    again = production.run(project)
    assert {step.action for step in again.steps} == {"reuse"}
    assert production.bytes_of(project, again) == before
    assert len(before) == len(rounds)
    assert len(production.confirmed(project)) == len(rounds)


@pytest.mark.parametrize("given", [{"protocol": "auto"}, {"direct": {"arm": "auto"}}])
def test_a_release_names_its_arm(tmp_path: Path, given: dict[str, object]) -> None:
    """A later rule must not make another release of the same pipeline."""
    project = production.write(tmp_path, **(DIRECT | given))
    with pytest.raises(UserError, match="how its message is formed"):
        production.plan(project)


def test_two_rounds_by_envelope(tmp_path: Path) -> None:
    """The second round's task carries the whitening; then there is a classifier."""
    few = {"epsilon": 100, "clients": {"train": 100}}
    quiet = production.changed(FAR, **arm("two") | few)
    server = Server(plain.write(tmp_path / "server", **{NAME: quiet}))
    assert blocked(server) == "waits for reports: 0 of 30"
    server.take(answers(server, "report", *some_clients(30, 1), tmp_path / "first"))
    assert blocked(server) == "waits for refinements: 0 of 70"
    second = answers(server, "refinement", *some_clients(70, 2), tmp_path / "second")
    server.take(second)
    plan, record = server.run()
    assert not plan.blocked_steps()
    ((cell, known),) = production_outcomes(server.project, record).items()
    assert (cell["epsilon"], known) == (100, {"reports": 100})
    curves, labels = some_clients(400, 3)
    model = final_model(server.project, record, cell)
    told = np.asarray(model.predict(curves)) == "+1"
    assert np.mean(told != labels) < 0.2
