"""System `federated`: stages of a single server, for each server."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from curvote.chain.settings import Strict
from curvote.protocols.settings import Aggregate, Privatize, Taught


class Federation(Strict):
    """Split of voters, second cutoff and faults of many servers.

    ``split`` says how the voters serve own and foreign classifiers: split among them,
    or asked twice with half the budget each, or own ones only (``single``). ``cutoff``
    is that of the second averaging. ``faults`` lets servers answer badly, to see that
    the others go on: ``nan``, ``dimension``, ``huge``, ``weights`` or ``silent`` by
    server.
    """

    split: Literal["clients", "budget", "single"] = "clients"
    cutoff: Annotated[float, Field(ge=0.5, lt=1)] = 0.8
    faults: dict[int, Literal["nan", "dimension", "huge", "weights", "silent"]] = {}


class Settings(Taught):
    """Settings of MRMA on many servers that share what they learn."""

    privatize: Privatize = Privatize()
    aggregate: Aggregate = Aggregate()
    federation: Federation = Federation()
