"""Stage refine: the other clients' noised directions, in whitened coordinates."""

from __future__ import annotations

from collections.abc import Sequence

from curvote.chain.stage import Columns, Facts, Inputs, Params, Source
from curvote.client.direction import DirectionReporter
from curvote.protocols.direct.arms import FIRST, from_params, handed_on
from curvote.protocols.direct.privatize import reports
from curvote.protocols.roles import EVERYBODY, Senders
from curvote.protocols.stage import Tables
from curvote.protocols.study import study_clients
from curvote.representation.direction import Whitening

SECOND = Senders(EVERYBODY.roles, start=FIRST)


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return how vectors are made: as in the first round, but for the coordinates."""
    asked = {"senders": SECOND.count(params["clients"])}
    return handed_on(inputs["whiten"]) | asked


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``directions``: noised, no client id, shuffled."""
    given = from_params(facts["d"], facts["params"]).whitened
    reporter = DirectionReporter.build(given, facts["epsilon"])
    return {"directions": [_reports(r, inputs, params, reporter) for r in replicates]}


def _reports(
    replicate: int, inputs: Inputs, params: Params, reporter: DirectionReporter
) -> Columns:
    clients = study_clients(inputs["project"], params, replicate)
    z = whitening_of(inputs["whiten"], replicate).apply(clients.z)
    return reports(clients, SECOND, reporter, (params["seed"], "refine"), z)


def whitening_of(source: Source, replicate: int) -> Whitening:
    """Return what the first round decided."""
    rows = source.columns("whitening", replicate)
    return Whitening(rows["matrix"], rows["centre"])
