"""Reports, and how far they lie from the records, as data."""

from __future__ import annotations

from curvote.chain.measure import Metric
from curvote.chain.system import System
from curvote.protocols import checks
from curvote.protocols.mrma.system import PRIVATIZE
from curvote.protocols.noise_check.messages import MESSAGES
from curvote.protocols.noise_check.methods import REPORT
from curvote.protocols.noise_check.settings import Settings
from curvote.protocols.stages.declared import COMMON, SECTIONS, scored

_SCORE = scored(
    "curvote.protocols.noise_check.score",
    ("ingest", "privatize"),
    params=("drift.at", "replicates"),
)

SYSTEM = System(
    name="drift",
    settings=Settings,
    stages=(*COMMON, PRIVATIZE, _SCORE),
    messages=MESSAGES,
    metrics=(
        Metric(
            "agreement",
            "noised labels that agree with the clean ones",
            better="higher",
            said="have labels that agree with the clean ones in {value} of cases",
        ),
        Metric("total_variation", "distance of the two laws"),
    ),
    methods=(REPORT,),
    main=("report",),
    checks=checks.every(checks.budgets),
    sections=SECTIONS,
)
