"""Protocols `counts`, `stump` and `tree` as pipelines: settings, models, releases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.messages.roles import split_roles
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.run.results import (
    final_model,
    final_views,
    production_outcomes,
    replicate_scores,
)
from tests import plain, production
from tests.exchange import FAR, NAME, Server, answers
from tests.federation.test_exchange import blocked, some_clients
from tests.memory import value

EVERY = ("counts", "stump", "tree")
PLAIN = {"basis": "bspline", "size": 4}
every_protocol = pytest.mark.parametrize("name", EVERY)


@pytest.mark.parametrize(
    ("entry", "named"),
    [
        ({"counts": {"bins": 1}}, "bins"),
        ({"counts": {"bins": 3000}}, "words"),
        ({"stump": {"thresholds": 2}}, "stump"),
    ],
)
def test_settings_out_of_range_are_refused(
    tmp_path: Path, entry: dict[str, Any], named: str
) -> None:
    """Too few and too many bins, and a section of another protocol."""
    written = plain.of("counts", given=plain.TINY | {"project": PLAIN}) | entry
    with pytest.raises(UserError, match=named):
        PipelinesFile(plain.write(tmp_path, tiny=written)).configure_pipeline(
            "tiny", ()
        )


def test_what_is_kept_is_what_was_scored(tmp_path: Path) -> None:
    """Of all three side by side: the model errs on test clients as the scores say."""
    short = [{"name": "counts", "bins": 4}, "stump", {"name": "tree", "cells": 4}]
    written = plain.of(*EVERY, given=plain.TINY | {"project": PLAIN})
    tiny = written | {"protocols": short, "epsilon": 8, "replicates": 2}
    project = plain.write(tmp_path, tiny=tiny)
    record = plain.run(project)
    assert set(EVERY) <= set(replicate_scores(project, record)["method"])
    sizes = {"counts": (4, 8), "stump": (1, 4), "tree": (1, 8)}
    for view in final_views(project, record):
        name = view.cell["protocol"]
        assert view.columns("aggregate", "scorecard")["score"].shape == sizes[name]
        clients = view.columns("ingest", "clients")
        seed, people = view.setting("seed"), view.setting("clients")
        test = split_roles(seed, 0, len(clients["label"]), people)["test"]
        model = final_model(project, record, view.cell)
        told = model.predict(clients["curve"][test])
        error = np.mean(told != model.classes_[clients["label"][test]])
        assert error == value(view.columns("report", "scores"), name)


@every_protocol
def test_every_client_releases_once(tmp_path: Path, name: str) -> None:
    """A repeated run gives the same bytes and spends nothing."""
    given = {"protocol": name, "project": PLAIN, "clients": {"train": 60, "vote": 80}}
    project = production.write(tmp_path, **given)
    made = production.run(project)
    before = production.bytes_of(project, made)
    again = production.run(project)
    assert {step.action for step in again.steps} == {"reuse"}
    assert production.bytes_of(project, again) == before
    assert len(production.confirmed(project)) == 1


def test_answers_by_envelope(tmp_path: Path) -> None:
    """Clients elsewhere are asked the published questions; then there is a model."""
    given = {"protocol": "counts", "project": PLAIN | {"rescale": "standard"}}
    far = production.changed(FAR, **given, clients={"train": 20})
    server = Server(plain.write(tmp_path / "server", **{NAME: far}))
    assert blocked(server) == "reports 0 of 20"
    curves, labels = some_clients(20, 1)
    server.take(answers(server, "report", curves, labels, tmp_path / "sent"))
    plan, record = server.run()
    assert not plan.blocked_steps()
    ((cell, told),) = production_outcomes(server.project, record).items()
    assert told == {"reports": 20}
    model = final_model(server.project, record, cell)
    assert set(model.predict(curves)) <= {"-1", "+1"}
