"""Choice of the engine: the first of the registry that does not refuse a model."""

from __future__ import annotations

from importlib import import_module
from typing import Literal, cast

from curvote.errors import UserError
from curvote.utility.engines.base import Engine, Evidence, Question
from curvote.utility.engines.registry import ENGINES

# The engine that takes every model, and can only draw.
LAST_ENGINE = "black_box"


def make_engine(name: str) -> Engine:
    """Return the engine ``name`` of the registry."""
    module, _, cls = ENGINES[name].partition(":")
    return cast(Engine, getattr(import_module(module), cls)())


def choose_engine(
    question: Question, evidence: Evidence | Literal["auto"] = "auto"
) -> tuple[Engine, str]:
    """Return the engine for a model, and why those before it refused.

    The reasons are a sentence each, what several say once, "" where the first takes it.
    ``evidence`` "draws" asks for the black box at once. "exact" and "bracket" are a
    UserError with the reasons where the model could only be drawn.
    """
    if evidence == "draws":
        return make_engine(LAST_ENGINE), "Draws were asked for."
    reasons: dict[str, None] = {}
    for name in ENGINES:
        candidate = make_engine(name)
        reason = candidate.refusal(question)
        if reason is None and (name != LAST_ENGINE or evidence == "auto"):
            return candidate, " ".join(reasons)
        if reason is not None:
            reasons[reason] = None
    raise UserError(
        f"No {evidence} answer is known for {type(question.model).__name__}:"
        f" {' '.join(reasons)} Let it be drawn (evidence 'draws' or 'auto')."
    )
