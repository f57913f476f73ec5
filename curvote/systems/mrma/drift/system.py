"""System `drift`: reports, and how far they lie from the records."""

from __future__ import annotations

from curvote.chain.measure import Look, Method, Metric
from curvote.chain.settings import Strict
from curvote.chain.system import System
from curvote.messages.measures import AGREEMENT
from curvote.systems.common import checks
from curvote.systems.common.declarations import COMMON_STAGES, SECTIONS, score_stage
from curvote.systems.common.settings import Privatize, Shared
from curvote.systems.mrma.drift.messages import MESSAGES
from curvote.systems.mrma.system import PRIVATIZE


class Drift(Strict):
    """Value of z at which noised and clean labels are compared."""

    at: float = 0.0


class Settings(Shared):
    """Settings of reports beside their records."""

    privatize: Privatize = Privatize()
    drift: Drift = Drift()


_SCORE = score_stage(
    "curvote.systems.mrma.stages:score_drift",
    ("ingest", "privatize"),
    params=("drift.at", "replicates"),
)

_REPORT = Method(
    "report",
    "reports",
    "The noised reports of the clients, held against their records.",
    Look("#d55e00", "o", width=2.6, size=6.5, above=6),
    rank=200,
)


SYSTEM = System(
    name="drift",
    settings=Settings,
    stages=(*COMMON_STAGES, PRIVATIZE, _SCORE),
    messages=MESSAGES,
    metrics=(
        AGREEMENT,
        Metric("total_variation", "distance of the two laws"),
    ),
    methods=(_REPORT,),
    main=("report",),
    checks=checks.combine_checks(checks.check_budgets),
    sections=SECTIONS,
)
