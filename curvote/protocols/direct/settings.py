"""System `direct` in one round: reports, then their mean."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from curvote.chain.settings import Strict
from curvote.protocols.settings import Shared


class Direct(Strict):
    """Arm of protocol ``direct``, and the constant beside z.

    ``auto`` takes the arm that N, d and epsilon call for; ``intercept`` is public.
    ``gate`` lets the server name the majority where the rule that it decoded gains
    nothing (`curvote.server.gate`); protocol `auto` always does.
    """

    arm: Literal["auto", "mean", "joint", "two", "one_of"] = "auto"
    intercept: Literal["auto"] | Annotated[float, Field(gt=0)] = "auto"
    gate: bool = False


class Volunteers(Strict):
    """Whether records of volunteers are joined with the reports."""

    labels: bool = False


class Settings(Shared):
    """Settings of noised directions; ``liars`` is the share that may lie."""

    direct: Direct = Direct()
    volunteers: Volunteers = Volunteers()
    liars: Annotated[float, Field(ge=0, lt=0.5)] = 0.0
