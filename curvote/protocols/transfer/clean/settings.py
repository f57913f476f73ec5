"""Settings of `transfer_clean`."""

from __future__ import annotations

from curvote.chain.settings import Strict
from curvote.protocols.settings import Representation
from curvote.protocols.transfer.settings import DEFAULT_PROJECT, Dealt, Volunteers


class Settings(Strict):
    """Who holds which records; there is no epsilon."""

    clients: Volunteers = Volunteers()
    project: Representation = DEFAULT_PROJECT
    transfer: Dealt = Dealt()
