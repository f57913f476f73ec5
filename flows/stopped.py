"""Causes of stopped runs: full disks, broken databases, silent servers."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from curvote.errors import InternalError, UserError
from curvote.flows.examining.databases import PREFECT, Database, describe_silence
from curvote.flows.examining.machine import full_folder
from curvote.flows.output import lines
from curvote.run.project import Project

# What Prefect and MLflow need to write down one run, with SQLite's journals.
MIN_FREE_BYTES = 16 * 2**20
# A server that is looked for so often, so far apart, has gone.
POLL_SECONDS, MAX_MISSES = 5.0, 6
_FULL_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT})


@contextmanager
def explained_errors(project: Project) -> Iterator[None]:
    """Raise a UserError in place of an error that a user can remedy."""
    try:
        yield
    except (UserError, InternalError):
        raise
    except Exception as error:
        explained = _earlier_user_error(error) or stop_cause(project, error)
        if explained is None:
            raise
        raise explained from error


def stop_cause(
    project: Project,
    error: BaseException | None = None,
    database: Database = PREFECT,
) -> UserError | None:
    """Return what keeps Prefect or MLflow from going on; None: unknown."""
    path = database.path(project)
    full = [
        e
        for e in _error_chain(error)
        if isinstance(e, OSError) and e.errno in _FULL_ERRORS
    ]
    place = full[0].filename if full else None
    place = place or full_folder(
        project, MIN_FREE_BYTES, *([path.parent] if path else [])
    )
    if place or full:
        return UserError(
            f"no space left where {place or project.state} is. What was stored before"
            " is intact; free some space (`curvote gc`) and run the same command to go"
            " on."
        )
    problem = database.problem(project)
    if problem:
        return UserError("; ".join(database.problem_and_remedy(project, problem)) + ".")
    text_lines = [
        line for link in _error_chain(error) for line in str(link).splitlines()
    ]
    if there := database.server_problem(project, text_lines):
        return UserError(f"{there}.")
    url = os.environ.get("PREFECT_API_URL") if error and database is PREFECT else None
    silence = describe_silence(url) if url else None
    if silence:
        return _server_lost(silence)
    return None


@contextmanager
def server_watched(url: str, ending: Callable[[], None]) -> Iterator[None]:
    """End this process when a server of the user is gone, instead of retrying.

    Nothing is lost by that, as by a kill: the store holds whole artifacts only. Our
    own server is started again. ``ending`` is done before.
    """
    over = threading.Event()
    threading.Thread(
        target=_watch_server, args=(url, over, ending), daemon=True
    ).start()
    try:
        yield
    finally:
        over.set()


def _watch_server(url: str, over: threading.Event, ending: Callable[[], None]) -> None:
    missed = 0
    while not over.wait(POLL_SECONDS):
        silence = describe_silence(url, patient=True)
        missed = missed + 1 if silence else 0
        if silence and missed >= MAX_MISSES and not over.is_set():
            lines.write_line(f"curvote: {_server_lost(silence)}", "error")
            try:
                ending()
            finally:
                os._exit(2)


def _server_lost(words: str) -> UserError:
    return UserError(
        f"Prefect's server at {words}. What was stored before is intact; run the same"
        " command to go on."
    )


def _earlier_user_error(error: BaseException) -> UserError | None:
    """Return the UserError within a chain of errors, if there is one."""
    return next((e for e in _error_chain(error) if isinstance(e, UserError)), None)


def _error_chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
