"""The sections of pipelines.yaml that MRMA reads."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from curvote.chain.settings import Strict
from curvote.protocols.settings import Aggregate, Privatize, Taught


class Histogram(Strict):
    """The histogram baseline: each axis of [-1, 1]^d is cut into ``bins`` parts."""

    bins: Annotated[int, Field(ge=2, strict=True)] = 4


class Watch(Strict):
    """When the newest votes of a round that stays open say that utility dropped."""

    drop: Annotated[float, Field(gt=0)] = 3.0


class Settings(Taught):
    """MRMA. ``as_published`` takes the definitions that match its printed tables."""

    privatize: Privatize = Privatize()
    aggregate: Aggregate = Aggregate()
    histogram: Histogram = Histogram()
    online: Watch = Watch()
    as_published: bool = False
