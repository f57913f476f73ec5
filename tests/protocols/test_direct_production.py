"""Production of `direct`: everybody releases one vector, once, in one round or two."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.ledger.book import Ledger
from curvote.pipeline.config.project import Project
from curvote.pipeline.run.results import final_model, production_outcomes
from tests import plain, production
from tests.exchange import FAR, NAME, Server, answers
from tests.federation.test_exchange import blocked, some_clients

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
    with pytest.raises(UserError, match="names its arm"):
        production.plan(project)


def test_two_rounds_by_envelope(tmp_path: Path) -> None:
    """The second round's task carries the whitening; then there is a classifier."""
    few = {"epsilon": 100, "clients": {"train": 100}}
    quiet = production.changed(FAR, **arm("two") | few)
    server = Server(plain.write(tmp_path / "server", **{NAME: quiet}))
    assert blocked(server) == "reports 0 of 30"
    server.take(answers(server, "report", *some_clients(30, 1), tmp_path / "first"))
    assert blocked(server) == "refinements 0 of 70"
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
