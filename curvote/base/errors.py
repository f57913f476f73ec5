"""Exceptions: errors that the user can fix, and internal bugs."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Problem:
    """A problem in the input, and the key path in pipelines.yaml of its cause.

    ``redacted`` is what a record may say of it, where the message quotes somebody's
    file.
    """

    message: str
    where: KeyPath | None = None
    redacted: str = ""

    def after(self, place: str) -> Problem:
        """Return the problem with ``place`` before its message."""
        return Problem(
            place + self.message, redacted=self.redacted and place + self.redacted
        )


class UserError(ValueError):
    """The input is wrong: says what was given, where it stands and what would be right.

    Parameters
    ----------
    message : str
        What to tell the user.
    where : tuple or None, default=None
        A key path in pipelines.yaml, such as ``("pipelines", "demo", "clients")``; the
        command line turns it into a line number.

    Attributes
    ----------
    problems : tuple of Problem
        Everything that was found in one pass.

    Examples
    --------
    >>> from curvote import Budget
    >>> try:
    ...     Budget(-1.0)
    ... except UserError as error:
    ...     print(error)
    epsilon is -1.0; it must be a finite number above 0.
    """

    def __init__(self, message: str, *, where: KeyPath | None = None) -> None:
        super().__init__(message)
        self.problems: tuple[Problem, ...] = (Problem(message, where),)

    @classmethod
    def several(cls, problems: Iterable[Problem]) -> UserError:
        """Return one error that reports all ``problems``."""
        listed = tuple(problems)
        error = cls("\n".join(problem.message for problem in listed))
        error.problems = listed
        return error

    def for_records(self) -> UserError:
        """Return an error whose text quotes no file; its problems still do."""
        error = UserError("\n".join(p.redacted or p.message for p in self.problems))
        error.problems = self.problems
        return error


class InternalError(Exception):
    """An invariant of curvote itself is broken: a bug, never the user's fault.

    Examples
    --------
    >>> issubclass(InternalError, ValueError)  # who mends input does not catch it
    False
    """


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the closest name, else all names."""
    names = sorted(candidates)
    listed = f" Known: {', '.join(names)}." if names else ""
    return suggest_closest(name, names) or listed


def suggest_closest(name: str, candidates: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the closest name, else nothing."""
    close = difflib.get_close_matches(name, sorted(candidates), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
