"""Which engine reads a model: the first of the registry that does not refuse it."""

from __future__ import annotations

from importlib import import_module
from typing import Literal, cast

from curvote.errors import UserError
from curvote.utility.engines.base import Engine, Evidence, Question
from curvote.utility.engines.registry import ENGINES

# The engine that takes every model, and can only draw.
LAST = "black_box"


def engine(name: str) -> Engine:
    """Return the engine ``name`` of the registry."""
    module, _, cls = ENGINES[name].partition(":")
    return cast(Engine, getattr(import_module(module), cls)())


def engine_for(
    question: Question, evidence: Evidence | Literal["auto"] = "auto"
) -> tuple[Engine, str]:
    """Return the engine that reads the model, and why those before it refused.

    The reasons are a sentence each, what several say once, "" where the first takes it.
    ``evidence`` "draws" asks for the black box at once. "exact" and "bracket" are a
    UserError with the reasons where the model could only be drawn.
    """
    if evidence == "draws":
        return engine(LAST), "Draws were asked for."
    reasons: dict[str, None] = {}
    for name in ENGINES:
        found = engine(name)
        reason = found.refusal(question)
        if reason is None and (name != LAST or evidence == "auto"):
            return found, " ".join(reasons)
        if reason is not None:
            reasons[reason] = None
    raise UserError(
        f"No {evidence} answer is known for {type(question.model).__name__}:"
        f" {' '.join(reasons)} Let it be drawn (evidence 'draws' or 'auto')."
    )
