"""System `mrma_privunit`: MRMA's stages with directions as reports."""

from __future__ import annotations

from curvote.protocols.direct.settings import Direct
from curvote.protocols.mrma.settings import Watch
from curvote.protocols.settings import Aggregate, Shared, Train


class Settings(Shared):
    """Settings of directions that train, and of votes."""

    train: Train | None = None
    direct: Direct = Direct()
    aggregate: Aggregate = Aggregate()
    online: Watch = Watch()
