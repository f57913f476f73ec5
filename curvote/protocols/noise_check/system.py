"""System `drift`: reports, and how far they lie from the records."""

from __future__ import annotations

from curvote.chain.measure import Look, Method, Metric
from curvote.chain.system import System
from curvote.protocols import checks
from curvote.protocols.measures import AGREEMENT
from curvote.protocols.mrma.system import PRIVATIZE
from curvote.protocols.noise_check.messages import MESSAGES
from curvote.protocols.noise_check.settings import Settings
from curvote.protocols.stages.declared import COMMON_STAGES, SECTIONS, score_stage

_SCORE = score_stage(
    "curvote.protocols.noise_check.score",
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
