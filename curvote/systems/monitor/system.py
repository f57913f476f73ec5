"""System `monitor`: is a model still right, by those it is used on."""

from typing import Final

from curvote.chain.stage import ROWS, TEXT, Stage, Table
from curvote.chain.system import System
from curvote.systems.labels.messages import CODE
from curvote.systems.monitor import messages, stages
from curvote.systems.monitor.settings import MonitorSettings, check_settings

_STAGES: Final = "curvote.systems.monitor.stages"
_ENDS: Final = dict.fromkeys(("value", "low", "high"), "float64")
_COUNTS: Final = dict.fromkeys(("look", "n"), "int64")
ANSWERS: Final = Table(
    messages.Answer.table,
    {
        **dict.fromkeys(("window", "look", messages.PLACE), "int64"),
        CODE: ROWS,
        "count": "int64",
    },
    unit="message",
)
FIGURES: Final = Table(
    "watch_figures",
    {
        **dict.fromkeys(stages.TEXTS, TEXT),
        **_ENDS,
        **dict.fromkeys(("share", "liars"), "float64"),
    },
    unit="number",
    optional=stages.OPTIONAL,
)
WINDOWS: Final = Table(
    "watch_windows", {**dict.fromkeys(("window", "n"), "int64"), **_ENDS}, unit="number"
)
LOOKS: Final = Table("watch_looks", {**_COUNTS, **_ENDS}, unit="number")
ALARMS: Final = Table("watch_alarms", {"alarm": TEXT, **_COUNTS}, unit="number")

_ANSWER: Final = Stage(
    "answer",
    f"{_STAGES}:collect",
    axes=("epsilon",),
    params=(
        *("epsilon", "protocol"),
        *(f"monitor.{name}" for name in messages.TASK_SETTINGS),
    ),
    tables=(ANSWERS,),
    side="client -> server",
    message=messages.ASKS,
    collected=f"{_STAGES}:collect",
)
_WATCH: Final = Stage(
    "watch",
    f"{_STAGES}:watch",
    inputs=("answer",),
    axes=("epsilon",),
    params=(
        *(f"monitor.{name}" for name in ("reference", "margin", "error", "rounds")),
        "replicates",
    ),
    tables=(FIGURES, WINDOWS, LOOKS, ALARMS),
    side="server",
)
_PAGE: Final = "curvote.systems.monitor.page"

SYSTEM = System(
    name=messages.PROTOCOL,
    settings=MonitorSettings,
    stages=(),
    production=(_ANSWER, _WATCH),
    messages=messages.MESSAGES,
    audit_tasks=messages.audited_tasks,
    checks=check_settings,
    production_metrics=lambda view: stages.watch_reputation(view).outcome(),
    reputation=stages.watch_reputation,
    notes=stages.alarm_notes,
    sections=(f"{_PAGE}:gather_watch",),
)
