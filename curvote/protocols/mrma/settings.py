"""System `mrma`: its settings, methods, stages and messages."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from curvote.chain.settings import Strict
from curvote.protocols.settings import Aggregate, Privatize, Taught


class Histogram(Strict):
    """The histogram baseline: each axis of [-1, 1]^d is cut into ``bins`` parts."""

    bins: Annotated[int, Field(ge=2, strict=True)] = 4


class Watch(Strict):
    """Threshold at which the newest votes of an open round raise an alert."""

    drop: Annotated[float, Field(gt=0)] = 3.0


class Settings(Taught):
    """Settings of MRMA; ``as_published`` takes the printed definitions."""

    privatize: Privatize = Privatize()
    aggregate: Aggregate = Aggregate()
    histogram: Histogram = Histogram()
    online: Watch = Watch()
    as_published: bool = False
