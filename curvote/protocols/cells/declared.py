"""The stages and the value of a system whose clients name cells and classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from curvote.chain.axis import Settings
from curvote.chain.measure import Method
from curvote.chain.stage import Stage
from curvote.chain.system import System
from curvote.datasets import lookup
from curvote.errors import Problem, UserError
from curvote.protocols import by_class, checks
from curvote.protocols.cells.final import final, outcome
from curvote.protocols.cells.messages import check_number
from curvote.protocols.cells.tables import ANSWERS, QUESTIONS, SCORECARD
from curvote.protocols.direct.system import FIXED
from curvote.protocols.majority.messages import Compared
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.measures import ERRORS
from curvote.protocols.stages.declared import (
    COMMON,
    ROLES,
    SECTIONS,
    drawn,
    released,
    scored,
    served,
)

Cells = Callable[[Settings], int]


def system(
    method: Method,
    settings: type[BaseModel],
    messages: Mapping[str, Any],
    size: tuple[str, Cells],
    *drawing: str,
) -> System:
    """Return the system that is called as its ``method`` is, in the folder of the name.

    ``size`` is the key of its section that says how many cells or questions there are,
    and the number of cells that settings ask for; ``drawing`` are further keys that its
    questions depend on.
    """
    here, (key, cells) = f"curvote.protocols.{method.name}", size
    stages = _stages(here, (f"{method.name}.{key}", *drawing))
    return System(
        name=method.name,
        settings=settings,
        stages=(*COMMON, *stages, _scored(here)),
        production=(*COMMON, *_production(stages)),
        messages=messages,
        compared=(Compared().words,),
        metrics=ERRORS,
        methods=(method, MAJORITY),
        main=(method.name,),
        checks=checks.every(checks.tested, classes=_few(method.name, key, cells)),
        short=(key,),
        fixed=FIXED,
        final=final,
        outcome=outcome,
        sections=SECTIONS,
    )


def _stages(here: str, params: tuple[str, ...]) -> tuple[Stage, Stage, Stage]:
    # No client has a part in the questions: every epsilon shares them.
    asked = ("project",)
    train = served("train", f"{here}.train", asked, QUESTIONS, axes=(), params=params)
    privatize = drawn("privatize", f"{here}.privatize", ANSWERS, ("project", "train"))
    read = ("project", "train", "privatize")
    return train, privatize, served("aggregate", f"{here}.aggregate", read, SCORECARD)


def _production(stages: tuple[Stage, Stage, Stage]) -> tuple[Stage, ...]:
    train, privatize, aggregate = stages
    inputs = ("ingest", "project", "train")
    release = released(privatize, "report", inputs, ("project.judge",))
    return train, release, aggregate


def _scored(here: str) -> Stage:
    return scored(
        f"{here}.score",
        ("project", "aggregate"),
        params=("epsilon", *ROLES),
        beside=(by_class.CONFUSION,),
    )


def _few(section: str, key: str, cells: Cells) -> checks.Check:
    """Ask for no more cells and classes than one word tells apart."""

    def found(pipeline: Settings) -> Iterator[Problem]:
        named = lookup.classes(pipeline.source) or ("one", "other")
        try:
            check_number(cells(pipeline), len(named))
        except UserError as error:
            yield Problem(str(error), (section, key))

    return found
