"""Stage privatize of `direct`: a noised direction from everybody."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Facts, Inputs, Params
from curvote.chain.streams import client_streams, generator
from curvote.client.direction import DirectionReporter
from curvote.mechanisms.privunit import PrivUnit
from curvote.protocols.choice import arm_of
from curvote.protocols.direct.arms import FIRST, from_params, to_params, vectors
from curvote.protocols.roles import EVERYBODY, Senders
from curvote.protocols.stage import Tables
from curvote.protocols.study import Clients, study_clients

Array = NDArray[np.float64]

SENDERS = {"two": Senders(EVERYBODY.roles, end=FIRST)}


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what is public: how vectors are made, their noise, why this arm."""
    arm, known = params["direct.arm"], published(inputs, params, params["direct.arm"])
    asked = EVERYBODY.count(params["clients"])
    return known | {
        "arm": arm,
        "senders": SENDERS.get(arm, EVERYBODY).count(params["clients"]),
        "rule": arm_of(asked, known["d"], known["epsilon"]).reason,
    }


def published(inputs: Inputs, params: Params, arm: str) -> Facts:
    """Return how the vectors of an arm are made, and what hides them."""
    public = inputs["project"].facts
    d, rescale = public["d"], public["encoding"]["rescale"]
    return {
        "d": d,
        "mechanism": PrivUnit.name,
        "epsilon": params["epsilon"],
        "params": to_params(vectors(arm, d, rescale, params["direct.intercept"])),
    }


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``directions``: noised, no client id, shuffled."""
    given = from_params(facts["d"], facts["params"])
    reporter = DirectionReporter.build(given, facts["epsilon"])
    senders = SENDERS.get(facts["arm"], EVERYBODY)
    place = params["seed"], "privatize"
    each = (study_clients(inputs["project"], params, r) for r in replicates)
    return {"directions": [reports(one, senders, reporter, place) for one in each]}


def reports(
    clients: Clients,
    senders: Senders,
    reporter: DirectionReporter,
    place: tuple[int, str],
    z: Array | None = None,
) -> Columns:
    """Return the noised vectors of ``senders``, in random order.

    ``place`` is (seed, stage); ``z`` (n, d) stands in for the z of all clients.
    """
    # Shuffled before the noise, not after: reports of a million clients stand once.
    rng = generator(*place, "shuffle", clients.replicate)
    rows = rng.permutation(senders.rows(clients.roles))
    known = clients.z if z is None else z
    noised = np.empty((len(rows), reporter.vectors.size))
    streams = client_streams(*place, "feature_noise", clients.replicate, len(rows))
    for part, noise in streams:
        mine = rows[part]
        noised[part] = reporter.release(
            known[mine], clients.labels[mine], noise, study=True
        )
    return {"direction": noised}
