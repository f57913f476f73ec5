"""Stage publish: the encoded records of the volunteers, public by their consent."""

from __future__ import annotations

from curvote.chain.stage import Facts, Here, Inputs, Params, Rows
from curvote.protocols.study import clients_of


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return how many classes labels name."""
    return {"n_classes": len(inputs["project"].facts["classes"])}


def one(here: Here) -> Rows:
    """Return the table ``public_records``: a row a volunteer, nobody else."""
    clients = clients_of(here)
    mine = clients.roles["public"]
    return {"public_records": {"z": clients.z[mine], "label": clients.labels[mine]}}
