"""Protocol mrma_privunit on plain tables: MRMA whose reports are noised directions."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from curvote.chain.stage import Columns, generator
from curvote.curves.basis import identity
from curvote.curves.encoding import Encoding, decision_sign
from curvote.learning.votes import draw_subsets
from curvote.messages.arms import make_directions
from curvote.messages.roles import split_roles
from curvote.pipeline.store.arrow import to_arrow
from curvote.systems.mrma import stages
from curvote.systems.mrma.privunit.messages import MESSAGES, TrainingDirection
from curvote.systems.mrma.privunit.system import SYSTEM
from tests.memory import Made, Memory, do, replicates, value
from tests.rounds import REPORTS

HUGE, REPLICATES = 200.0, 6
SIZES = {"public": 0, "train": 500, "vote": 2000, "test": 500}
N, D = sum(SIZES.values()), 4
TRUTH = np.array([2.0, -1.0, 0.0, 1.0])
PARAMS: dict[str, Any] = {
    "seed": 3,
    "clients": SIZES,
    "source.groups": None,
    "epsilon": HUGE,
    "replicates": REPLICATES,
    "direct.intercept": "auto",
    "project.judge": "rescaled",
    "train.count": 20,
    "train.size": 50,
    "aggregate.cutoff": 0.8,
    "aggregate.weights": "excess",
    "aggregate.when_none_pass": "soft",
}
STAGES = {stage.name: stage for stage in SYSTEM.stages[2:]}
MESSAGE = TrainingDirection()


def encoded(seed: int) -> Columns:
    """Return clients whose label is the sign of TRUTH'z and some noise."""
    rng = np.random.default_rng(seed)
    z = np.tanh(rng.normal(size=(N, D)))
    label = (z @ TRUTH + rng.normal(size=N) / 2 > 0).astype(int)
    return {"label": label, "z": z, "coefficients": z + 100}


def project(change: Columns | None = None) -> Memory:
    """Return the clients; those of the first replicate may be others."""
    facts = {"d": D, "encoding": Encoding(identity(D), "tanh").to_json()}
    facts |= {"classes": ["no", "yes"], "roughness": np.zeros((D, D)).tolist()}
    rows = [encoded(replicate) for replicate in range(REPLICATES)]
    rows[0] |= change or {}
    return Memory.of(facts, encoded=rows)


def did(name: str, made: Made, epsilon: float = HUGE) -> Memory:
    """Run a stage for all replicates."""
    return do(STAGES[name], made, PARAMS | {"epsilon": epsilon}, replicates(REPLICATES))


@lru_cache
def chain(epsilon: float = HUGE) -> Made:
    """Run every stage."""
    made = {"project": project()}
    for name in STAGES:
        made[name] = did(name, made, epsilon)
    return made


def errors(epsilon: float, method: str) -> np.ndarray:
    """Return the misclassification of a method in each replicate."""
    every = chain(epsilon)["report"].each("scores")
    return np.array([value(rows, method) for rows in every])


def best_errors() -> np.ndarray:
    """Return how often the sign of TRUTH'z is wrong for the test clients."""
    found = []
    for replicate, rows in enumerate(project().each("encoded")):
        mine = split_roles(PARAMS["seed"], replicate, N, SIZES)["test"]
        truth = np.where(rows["label"][mine] == 1, 1.0, -1.0)
        found.append(np.mean(decision_sign(rows["z"][mine] @ TRUTH) != truth))
    return np.array(found)


# ------------------------------------------------------------------------ the chain
def test_without_noise_to_speak_of_it_comes_close_to_the_truth() -> None:
    """Within 3 points of the true slopes; a weak one alone is worse, 5 std. errors."""
    ours = errors(HUGE, "mrma")
    assert (ours - best_errors()).mean() < 0.03
    loss = errors(HUGE, "weak") - ours
    assert loss.mean() > 5 * loss.std(ddof=1) / np.sqrt(REPLICATES)


def test_more_noise_is_worse() -> None:
    """Weak classifiers at epsilon 0.5 lose 5 standard errors."""
    loss = errors(0.5, "weak") - errors(HUGE, "weak")
    assert loss.mean() > 5 * loss.std(ddof=1) / np.sqrt(REPLICATES)


def test_only_training_clients_report() -> None:
    """Voters and test clients may be anybody: reports and classifiers stay."""
    others = np.ones(N, dtype=bool)
    others[split_roles(PARAMS["seed"], 0, N, SIZES)["train"]] = False
    rows = encoded(0)
    changed = {
        "z": np.where(others[:, None], -rows["z"], rows["z"]),
        "label": np.where(others, 1 - rows["label"], rows["label"]),
    }
    made = {"project": project(changed)}
    for name in ("privatize", "train"):
        made[name] = did(name, made)
        np.testing.assert_equal(made[name].tables, chain()[name].tables)
    reports = made["privatize"].columns("directions", (0,))["direction"]
    assert reports.shape == (SIZES["train"], D + 1)


def test_reports_stand_in_random_order() -> None:
    """A row's place says nothing of who sent it: noiseless rows are not in order."""
    rows, mine = encoded(0), split_roles(PARAMS["seed"], 0, N, SIZES)["train"]
    labels = np.where(rows["label"][mine] == 1, 1.0, -1.0)
    given = make_directions("mean", D, "tanh", "auto").vectors(rows["z"][mine], labels)
    sent = chain()["privatize"].columns("directions", (0,))["direction"]
    own_place = (given @ sent.T).argmax(axis=1) == np.arange(len(mine))
    assert own_place.mean() < 0.1


def test_classifiers_learn_from_the_draws_of_mrma(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each is decoded from its own ``size`` different reports, drawn as MRMA draws."""
    monkeypatch.setattr(
        stages, "one_round_classifier", lambda total, *_: (total.mean, 0.0)
    )
    n = SIZES["train"]
    sent = [{"direction": np.eye(n)}] * REPLICATES
    reports = Memory.of(chain()["privatize"].metadata, directions=sent)
    for r, rows in enumerate(did("train", {"privatize": reports}).each("weak")):
        drawn = draw_subsets(generator(3, "train", "draw", r), n, 20, 50)
        expected = np.zeros((20, n))
        np.put_along_axis(expected, drawn, 1 / 50, axis=1)
        np.testing.assert_allclose(rows["coef"], expected)
        np.testing.assert_array_equal(rows["n"], np.full(20, 50))


def test_rows_of_a_study() -> None:
    """MRMA's own methods and the majority: nothing that pools everybody's reports."""
    (rows, *_) = chain()["report"].each("scores")
    methods = ["weak", "mr", "ma", "mrma", "best_single", "majority"]
    assert rows["method"].tolist() == [*methods, "mrma", "ma"]
    assert rows["metric"].tolist() == ["misclassification"] * 6 + ["none_passed"] * 2


def test_the_server_s_tables_hold_no_client() -> None:
    """They keep their contracts, which know no id, and hold no client's number."""
    own = project().columns("encoded", (0,))
    secret = np.concatenate([own["z"].ravel(), own["coefficients"].ravel()])
    for stage in ("privatize", "train", "evaluate", "aggregate"):
        (table,) = STAGES[stage].tables
        columns = chain(0.5)[stage].columns(table.name, (0,))
        assert to_arrow(table, ("replicate",), (0,), columns).num_rows > 0
        for values in columns.values():
            assert not np.isin(secret, np.ravel(values).astype(float)).any()


# ----------------------------------------------------------------------- the message
def asked(epsilon: float = 1.0) -> Any:
    """Return the first round's task, as a configuration of another arm states it."""
    setting = {"direct.arm": "joint", "direct.intercept": "auto"}
    terms = MESSAGE.terms(setting.__getitem__, REPORTS.encoding)
    return replace(REPORTS, protocol="mrma_privunit", epsilon=epsilon, **terms)


def test_the_task_is_that_of_one_label_moment() -> None:
    """All of the report is y u, from training clients alone, as many as one learns."""
    assert asked().params["share"] == 1.0
    assert asked().mechanism == "privunit"
    assert MESSAGE.senders.count(SIZES) == SIZES["train"]
    assert MESSAGE.min_messages({"train": {"size": 50}}) == 50
    assert [*MESSAGES] == ["report", "vote", "judgement"]
    assert MESSAGES["vote"].senders.count(SIZES) == SIZES["vote"]
