"""Redaction of errors: messages that might hold a client's value are hidden."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from curvote.errors import InternalError, UserError


class RedactedError(Exception):
    """An error whose message is its kind only; the original is its cause.

    Prefect keeps the message of what ends a run in its database.
    """


@contextmanager
def redaction() -> Iterator[None]:
    """Raise a RedactedError in place of an unexpected error.

    A user's error goes on without what it quotes of a file, but for a terminal.
    """
    try:
        yield
    except UserError as error:
        raise error.for_records() from None
    except (InternalError, RedactedError):
        raise
    except Exception as error:
        raise RedactedError(type(error).__name__) from error
