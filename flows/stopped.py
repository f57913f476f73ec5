"""Why a run stopped, in words: what Prefect says of a full disk fills a screen."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from curvote.errors import InternalError, UserError
from curvote.run.project import Project
from flows.examining.databases import PREFECT, Database, unanswered
from flows.examining.machine import scarce

# What Prefect and MLflow need to write down one run, with SQLite's journals.
NEEDED = 16 * 2**20
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


@contextmanager
def in_words(project: Project) -> Iterator[None]:
    """Raise a UserError in place of an error that a user can mend; leave others."""
    try:
        yield
    except (UserError, InternalError):
        raise
    except Exception as error:
        known = _told_before(error) or cause(project, error)
        if known is None:
            raise
        raise known from error


def cause(
    project: Project,
    error: BaseException | None = None,
    database: Database = PREFECT,
) -> UserError | None:
    """Say what keeps Prefect or MLflow from going on, None: nothing we know of."""
    path = database.path(project)
    full = [e for e in _chain(error) if isinstance(e, OSError) and e.errno in _FULL]
    place = full[0].filename if full else None
    place = place or scarce(project, NEEDED, *([path.parent] if path else []))
    if place or full:
        return UserError(
            f"no space left where {place or project.state} is. What was stored before"
            " is intact; free some space (`curvote gc`) and run the same command to go"
            " on."
        )
    problem = database.problem(project)
    if problem:
        return UserError("; ".join(database.words(project, problem)) + ".")
    url = os.environ.get("PREFECT_API_URL") if error and database is PREFECT else None
    lost = unanswered(url) if url else None
    if lost:
        return UserError(
            f"Prefect's server at {lost}. What was stored before is intact; run the"
            " same command to go on."
        )
    return None


def _told_before(error: BaseException) -> UserError | None:
    """Return what curvote itself said first: Prefect fell over telling it."""
    return next((e for e in _chain(error) if isinstance(e, UserError)), None)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
