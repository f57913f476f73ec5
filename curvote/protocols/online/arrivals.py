"""Arrivals: the clients who come in one of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import StageContext
from curvote.errors import UserError
from curvote.protocols.study import StudyClients, study_clients


def client_arrivals(context: StageContext) -> NDArray[np.int64]:
    """Return the arrival of every client, (n,), numbered from 0.

    A source whose groups are no arrivals is a UserError.
    """
    if "periods" not in context.inputs["project"].metadata:
        raise UserError(
            "protocol online needs clients who arrive in groups, such as those of"
            " source drifting.",
            where=("source", "name"),
        )
    return context.rows("project", "encoded")["group"]


def arriving_clients(context: StageContext) -> StudyClients:
    """Return the clients with the roles of this stage's arrival.

    Roles are split among all clients first, so that they do not depend on how many
    arrivals there have been. An arrival beyond the source's last is a UserError.
    """
    arrival, groups = context.params["arrival"], client_arrivals(context)
    periods = context.inputs["project"].metadata["periods"]
    if arrival >= periods:
        raise UserError(
            f"arrival {arrival} was asked for, but the source has only"
            f" {periods}, numbered from 0.",
            where=("online", "arrivals"),
        )
    clients = study_clients(context)
    arriving_roles = {
        role: i[groups[i] == arrival] for role, i in clients.roles.items()
    }
    return replace(clients, roles=arriving_roles)
