"""Errors whose words nobody may keep: a bug's message can hold a client's value."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from curvote.errors import InternalError, UserError


class UnsaidError(Exception):
    """An error of another kind, which its message names; its words are in its cause.

    Prefect keeps the message of what ends a run in its database.
    """


@contextmanager
def unsaid() -> Iterator[None]:
    """Raise an UnsaidError in place of what is neither the user's to mend nor known.

    A user's error keeps its problems, for the terminal; its text is what records keep.
    """
    try:
        yield
    except UserError as error:
        error.args = (error.on_record,)
        raise
    except (InternalError, UnsaidError):
        raise
    except Exception as error:
        raise UnsaidError(type(error).__name__) from error
