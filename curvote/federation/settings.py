"""The sections of pipelines.yaml that many servers read."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from curvote.chain.settings import Strict
from curvote.protocols.settings import Aggregate, Privatize, Taught


class Federation(Strict):
    """How many servers share what they learn; for a source with several servers.

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
    """MRMA on many servers that share what they learn."""

    privatize: Privatize = Privatize()
    aggregate: Aggregate = Aggregate()
    federation: Federation = Federation()
