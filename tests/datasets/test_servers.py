"""Sources with several servers: what is stated of them holds for what is drawn."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.chain.stage import StageContext
from curvote.data import lookup
from curvote.messages import stages
from curvote.pipeline.config.file import PipelinesFile
from tests import plain

DRIFT = {"name": "posterior_drift", "n": 30, "m": 2, "gamma": 0.5, "test": 10}
AWAY = {
    "name": "remote_table",
    "servers": ["a", "b"],
    "features": {"x": [0, 1]},
    "classes": ["no", "yes"],
}


def drawn(source: dict[str, Any], *place: int, **params: Any) -> dict[str, Any]:
    """Return the clients of one repetition."""
    known = {"source": source, "seed": 3, "clients": None} | params
    sizes = (5, 25)[: len(place)]
    return stages.ingest(StageContext("ingest", place, sizes, {}, known, {}))["clients"]


def test_a_source_of_known_size_needs_no_roles() -> None:
    """It draws the same records however many clients are asked for; anew each time."""
    first = drawn(DRIFT, 0)
    assert np.bincount(first["group"]).tolist() == [40, 30, 30]
    again = drawn(DRIFT, 0, clients={"train": 7, "test": 2})
    assert all((first[name] == again[name]).all() for name in first)
    assert not (first["curve"] == drawn(DRIFT, 1)["curve"]).all()
    assert stages.ingest_metadata({}, {"source": DRIFT})["servers"] == lookup.servers(
        DRIFT
    )


def test_records_that_stay_away_are_not_drawn() -> None:
    """With roles or without, the table has no row."""
    for clients in (None, {"train": 7}):
        assert len(drawn(AWAY, 0, clients=clients)["label"]) == 0


def test_a_repetition_of_one_server_draws_its_clients() -> None:
    """What stands behind the replicate in the place names the server."""
    source = {"name": "simulated_servers", "points": 9}
    assert lookup.drawn_per_server(source)
    dataset, parameters = lookup.resolve_source(source)
    context = StageContext("ingest", (2, 17), (5, 25), {}, {"seed": 3}, {})
    params = {"source": source, "seed": 3, "clients": {"train": 4}}
    found = drawn(source, 2, 17, clients={"train": 4})
    own = dataset.clients(parameters, 4, context.generator("simulate"), 17)
    assert all((found[name] == own[name]).all() for name in own)
    other = dataclasses.replace(context, place=(2, 18), params=params)
    assert not (stages.ingest(other)["clients"]["curve"] == own["curve"]).all()


def test_who_plays_a_role_does_not_redraw_a_source_of_known_size(tmp_path):
    """The key of ingest holds what counts: seed and replicates, no roles."""
    project = {"basis": "identity", "rescale": "min_max", "bounds": "public"}
    pipeline = plain.of("direct") | {"source": DRIFT, "project": project}
    pipeline |= {"clients": {"train": 60, "test": 20}}
    root = plain.write(tmp_path, tiny=pipeline)

    def key(*overrides: str) -> str:
        return next(s.key for s in plain.plan(root, "tiny", *overrides).steps)

    assert key() == key("clients.train=50")
    assert key() != key("replicates=6")
    assert key() != key("source.gamma=0.6")
    with pytest.raises(UserError, match="there are only 100"):
        key("clients.train=90")


@pytest.mark.parametrize(
    ("protocol", "source"),
    [
        ("federated", {"name": "heart"}),
        ("federated", DRIFT),
        ("federated", AWAY),
        ("mrma", {"name": "simulated_servers"}),
    ],
)
def test_servers_that_are_drawn_apart_are_for_systems_that_ask_for_them(
    tmp_path: Path, protocol: str, source: dict[str, Any]
) -> None:
    """Others pool the records of all servers, or know which is whose."""
    project = plain.write(tmp_path, tiny=plain.of(protocol) | {"source": source})
    with pytest.raises(UserError, match="several servers"):
        PipelinesFile(project).configure_pipeline("tiny")
