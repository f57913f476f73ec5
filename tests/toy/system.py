"""The toy as data."""

from __future__ import annotations

from collections.abc import Iterator

from curvote.base.errors import Problem
from curvote.chain.axis import Axis, Value
from curvote.chain.axis import PipelineSettings as Given
from curvote.chain.measure import SCORES
from curvote.chain.stage import Stage
from curvote.chain.system import System, View
from curvote.toy.asked import asked
from curvote.toy.messages import MESSAGES
from curvote.toy.methods import ACCURACY, CENTRES, CERTAINTY, LOG_LOSS, WEIGHTED
from curvote.toy.model import Nearest
from curvote.toy.settings import Settings
from curvote.toy.tables import ANSWERS, MODELS, TALLY, TOWN

_HERE = "curvote.toy"


def _level(settings: Given, name: Value | None) -> dict[str, float] | None:
    return None if name is None else settings.levels[name].model_dump()


LEVEL = Axis("level", lambda s: list(s.levels), _level, key="levels")
SHRINK = Axis("shrink", lambda s: s.shrink, key="shrink")

_GATHER = Stage(
    "gather",
    f"{_HERE}.gather:gather",
    params=("source", "parties", "seed", "replicates"),
    plugins=(("curvote.data.registry:DATASETS", "source.name"),),
    tables=(TOWN,),
)
_ASK = Stage(
    "ask",
    f"{_HERE}.ask:ask",
    inputs=("gather",),
    axes=("level",),
    params=("level.people", "seed", "replicates"),
    tables=(ANSWERS,),
    side="client -> server",
)
_COUNT = Stage(
    "count",
    f"{_HERE}.count:count",
    inputs=("gather",),
    axes=("level",),
    params=("level.shops", "seed", "replicates"),
    tables=(TALLY,),
    side="client -> server",
)
_FIT = Stage(
    "fit_models",
    f"{_HERE}.fit:fit",
    inputs=("gather", "ask", "count"),
    axes=("level", "shrink"),
    params=("shrink", "replicates"),
    tables=(MODELS,),
    side="server",
)
_SCORE = Stage(
    "report",
    f"{_HERE}.score:score",
    inputs=("gather", "fit_models"),
    axes=("level", "shrink"),
    params=("replicates",),
    tables=(SCORES,),
    side="client (study)",
)


def checks(settings: Given) -> Iterator[Problem]:
    """Yield centres that are drawn beyond the middle."""
    if any(not 0 <= share < 1 for share in settings.shrink):
        yield Problem("a centre is drawn by a share in [0, 1).", ("shrink",))


def final(view: View) -> Nearest:
    """Return the weighted model of the first replicate."""
    rows = view.columns("fit_models", "models")
    return Nearest.from_bytes(
        dict(zip(rows["method"], rows["model"], strict=True))["weighted"]
    )


SYSTEM = System(
    name="toy",
    settings=Settings,
    stages=(_GATHER, _ASK, _COUNT, _FIT, _SCORE),
    axes=(LEVEL, SHRINK),
    x=SHRINK,
    messages=MESSAGES,
    audit_tasks=asked,
    metrics=(ACCURACY, CERTAINTY, LOG_LOSS),
    methods=(CENTRES, WEIGHTED),
    main=("weighted",),
    checks=checks,
    final_model=final,
)
