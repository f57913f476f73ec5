"""Who arrives when: the clients of one arrival, as the client-side stages see them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Here
from curvote.errors import UserError
from curvote.protocols.study import Clients, clients_of


def arrival_of(here: Here) -> NDArray[np.int64]:
    """Return the arrival of every client, (n,), numbered from 0.

    A source whose groups are no arrivals is a UserError.
    """
    if "periods" not in here.inputs["project"].facts:
        raise UserError(
            "protocol online needs clients who arrive in groups, such as those of"
            " source drifting.",
            where=("source", "name"),
        )
    return here.rows("project", "encoded")["group"]


def arriving(here: Here) -> Clients:
    """Return the clients with the roles of those in this stage's arrival.

    Roles are split among all clients first, so that they do not depend on how many
    arrivals there have been. An arrival beyond the source's last is a UserError.
    """
    arrival, groups = here.params["arrival"], arrival_of(here)
    periods = here.inputs["project"].facts["periods"]
    if arrival >= periods:
        raise UserError(
            f"arrival {arrival} was asked for, but the source has only"
            f" {periods}, numbered from 0.",
            where=("online", "arrivals"),
        )
    clients = clients_of(here)
    mine = {role: i[groups[i] == arrival] for role, i in clients.roles.items()}
    return replace(clients, roles=mine)
