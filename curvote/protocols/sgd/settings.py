"""System `sgd`: rounds of noised gradients, and a descent along them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from curvote.chain.settings import Strict, Whole
from curvote.protocols.settings import Shared

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Sgd(Strict):
    """Rounds, rate and clipping of protocol ``sgd``.

    ``rounds`` batches of clients, of sizes that differ by 1, are asked one after the
    other. A step is ``rate`` times the number of slopes times the mean gradient, less
    where there is more noise (`curvote.server.gradient`). Gradients are clipped to
    ``clip``, in units of a record's usual length.
    """

    rounds: Whole = 4
    rate: Positive = 5.0
    clip: Positive = 0.2


class Settings(Shared):
    """Settings of gradient descent, one gradient a client."""

    sgd: Sgd = Sgd()
