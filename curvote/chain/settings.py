"""The forms of settings: frozen, and keys that nobody knows are errors."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

Whole = Annotated[int, Field(ge=1, strict=True)]
Count = Annotated[int, Field(ge=0, strict=True)]
Epsilon = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Numbers = float | list[float]


def _listed(given: Any) -> Any:
    """Return a list of one where a single number is given."""
    return [given] if isinstance(given, int | float) else given


# Privacy levels: a list, or one number.
_Several = Annotated[list[Epsilon], Field(min_length=1)]
Epsilons = Annotated[_Several, BeforeValidator(_listed, _Several | Epsilon)]


class Strict(BaseModel):
    """A frozen model that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)
