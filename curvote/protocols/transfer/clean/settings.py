"""The sections of pipelines.yaml that learning from all records together reads."""

from __future__ import annotations

from curvote.chain.settings import Strict
from curvote.protocols.settings import Representation
from curvote.protocols.transfer.settings import PROJECT, Dealt, Volunteers


class Settings(Strict):
    """Who holds which records; there is no epsilon."""

    clients: Volunteers = Volunteers()
    project: Representation = PROJECT
    transfer: Dealt = Dealt()
