"""Why a run stopped, in words: what Prefect says of a full disk fills a screen."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from curvote.errors import InternalError, UserError
from curvote.flows.examining.databases import PREFECT, Database, unanswered
from curvote.flows.examining.machine import scarce
from curvote.flows.output import lines
from curvote.run.project import Project

# What Prefect and MLflow need to write down one run, with SQLite's journals.
NEEDED = 16 * 2**20
# A server that is looked for so often, so far apart, has gone.
LOOK_SECONDS, MISSES = 5.0, 6
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
    said = [line for each in _chain(error) for line in str(each).splitlines()]
    if there := database.elsewhere(project, said):
        return UserError(f"{there}.")
    url = os.environ.get("PREFECT_API_URL") if error and database is PREFECT else None
    lost = unanswered(url) if url else None
    if lost:
        return _lost(lost)
    return None


@contextmanager
def watching(url: str, ending: Callable[[], None]) -> Iterator[None]:
    """End this process where a server of the user's has gone: Prefect tries for hours.

    Nothing is lost by that, as by a kill: the store holds whole artifacts only. Our
    own server is started again. ``ending`` is done before.
    """
    over = threading.Event()
    threading.Thread(target=_watch, args=(url, over, ending), daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _watch(url: str, over: threading.Event, ending: Callable[[], None]) -> None:
    missed = 0
    while not over.wait(LOOK_SECONDS):
        gone = unanswered(url, patient=True)
        missed = missed + 1 if gone else 0
        if gone and missed >= MISSES and not over.is_set():
            lines.say(f"curvote: {_lost(gone)}", "error")
            try:
                ending()
            finally:
                os._exit(2)


def _lost(words: str) -> UserError:
    return UserError(
        f"Prefect's server at {words}. What was stored before is intact; run the same"
        " command to go on."
    )


def _told_before(error: BaseException) -> UserError | None:
    """Return what curvote itself said first: Prefect fell over telling it."""
    return next((e for e in _chain(error) if isinstance(e, UserError)), None)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
