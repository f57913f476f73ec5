"""The sections of pipelines.yaml that `mrma_privunit` reads."""

from __future__ import annotations

from curvote.protocols.direct.settings import Direct
from curvote.protocols.mrma.settings import Watch
from curvote.protocols.settings import Aggregate, Shared, Train


class Settings(Shared):
    """Directions that train, and votes."""

    train: Train | None = None
    direct: Direct = Direct()
    aggregate: Aggregate = Aggregate()
    online: Watch = Watch()
