"""Who arrives when: the clients of one arrival, as the client-side stages see them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Params, Source
from curvote.errors import UserError
from curvote.protocols.study import Clients, study_clients


def arrival_of(project: Source, replicate: int) -> NDArray[np.int64]:
    """Return the arrival of every client, (n,), numbered from 0.

    A source whose groups are no arrivals is a UserError.
    """
    if "periods" not in project.facts:
        raise UserError(
            "protocol online needs clients who arrive in groups, such as those of"
            " source drifting.",
            where=("source", "name"),
        )
    return project.columns("encoded", replicate)["group"]


def arriving(project: Source, params: Params, replicate: int) -> Clients:
    """Return the clients with the roles of those in arrival ``params["arrival"]``.

    Roles are split among all clients first, so that they do not depend on how many
    arrivals there have been. An arrival beyond the source's last is a UserError.
    """
    arrival, groups = params["arrival"], arrival_of(project, replicate)
    if arrival >= project.facts["periods"]:
        raise UserError(
            f"arrival {arrival} was asked for, but the source has only"
            f" {project.facts['periods']}, numbered from 0.",
            where=("online", "arrivals"),
        )
    clients = study_clients(project, params, replicate)
    mine = {role: i[groups[i] == arrival] for role, i in clients.roles.items()}
    return replace(clients, roles=mine)
