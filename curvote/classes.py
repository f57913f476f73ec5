"""The classes of a task: two or more, in the publisher's words."""

from __future__ import annotations

from collections.abc import Iterable

from curvote.errors import UserError
from curvote.validate import shown


class Classes(tuple[str, ...]):
    """The names of the classes, in the publisher's order."""

    __slots__ = ()

    def __new__(cls, names: Iterable[str]) -> Classes:
        """Take the names; fewer than two, or one of them twice, is a UserError."""
        made = super().__new__(cls, names)
        if len(made) < 2 or len({*made}) < len(made):
            given = ", ".join(map(shown, made)) or "none"
            raise UserError(
                f"the classes are {given}; give two or more, all different."
            )
        return made

    @property
    def two(self) -> tuple[str, str]:
        """The negative and the positive class of a method that tells two apart.

        Further classes are a UserError.
        """
        if len(self) > 2:
            raise UserError(f"{len(self)} classes; only two can be told apart here.")
        return self[0], self[1]
