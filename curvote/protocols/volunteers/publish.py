"""Stages of volunteers, alone and joined with reports."""

from __future__ import annotations

from curvote.chain.stage import Inputs, Metadata, Params, Rows, StageContext
from curvote.protocols.study import study_clients


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the number of classes."""
    return {"n_classes": len(inputs["project"].metadata["classes"])}


def one(context: StageContext) -> Rows:
    """Return the table ``records``: a row a volunteer."""
    clients = study_clients(context)
    volunteers = clients.roles["public"]
    return {
        "public_records": {
            "z": clients.z[volunteers],
            "label": clients.labels[volunteers],
        }
    }
