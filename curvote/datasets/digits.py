"""Settings of handwritten digits, shared by MNIST and the zip codes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from curvote.datasets.images import ImageParameters
from curvote.datasets.listed import DISTINCT_CLASSES, all_classes, check_one_way

Digit = Annotated[int, Field(ge=0, le=9, strict=True)]
DIGITS = tuple(map(str, range(10)))


class DigitParameters(ImageParameters):
    """Settings of ``source:``: which digits, and which part of the data.

    ``classes`` is `all`, or lists two digits or more, instead of ``negative`` and
    ``positive``.
    """

    negative: Digit = 3
    positive: Digit = 8
    classes: (
        Annotated[tuple[Digit, ...], all_classes((*range(10),)), DISTINCT_CLASSES]
        | None
    ) = None

    @field_validator("positive")
    @classmethod
    def _check_two_digits(cls, positive: int, info: ValidationInfo) -> int:
        if positive == info.data.get("negative"):
            raise PydanticCustomError("same", "it must differ from negative")
        return positive

    @model_validator(mode="after")
    def _check_one_way(self) -> DigitParameters:
        check_one_way(self, "positive", "negative")
        return self

    @property
    def places(self) -> tuple[int, ...]:
        """Return the digits, in the pipeline's order."""
        return self.classes or (self.negative, self.positive)
