"""The two kinds of failure: what the user can mend, and what is our bug."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

Where = tuple[str | int, ...]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, and the key path in pipelines.yaml where it stands.

    ``private`` ends the message on the terminal of a file's owner: counts and cells of
    the file, which no record, log or page may keep.
    """

    message: str
    where: Where | None = None
    private: str = ""

    @property
    def told(self) -> str:
        """The message, for the terminal."""
        return self.message + self.private

    @property
    def on_record(self) -> str:
        """The message, for records."""
        rest = " ... (`curvote check` shows the rest)" if self.private else ""
        return self.message + rest


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

    def __init__(self, message: str, *, where: Where | None = None) -> None:
        super().__init__(message)
        self.problems: tuple[Problem, ...] = (Problem(message, where),)

    @classmethod
    def several(cls, problems: Iterable[Problem]) -> UserError:
        """One error that reports all ``problems`` together."""
        found = tuple(problems)
        error = cls("\n".join(problem.told for problem in found))
        error.problems = found
        return error

    @property
    def on_record(self) -> str:
        """What records may keep of it."""
        return "\n".join(problem.on_record for problem in self.problems)


class InternalError(Exception):
    """An invariant of curvote itself is broken: a bug, never the user's fault.

    Examples
    --------
    >>> issubclass(InternalError, ValueError)  # who mends input does not catch it
    False
    """


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the closest name, else all known names."""
    names = sorted(known)
    listed = f" Known: {', '.join(names)}." if names else ""
    return closest(given, names) or listed


def closest(given: str, known: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the closest name, nothing if none is close."""
    close = difflib.get_close_matches(given, sorted(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
