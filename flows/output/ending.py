"""How a command ends that could not do its work: one line for each thing wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from curvote.errors import InternalError, UserError
from curvote.extras import cure
from curvote.flows.output import lines

# The extra with which a command goes; one that is not here reads pipelines.yaml.
_MOST = "pipeline"
_LEAST = {
    "client": "laws",
    **dict.fromkeys(("advise", "audit", "data", "utility"), "method"),
    "ui": "tracking",
}


@contextmanager
def told(command: str = "") -> Iterator[None]:
    """Say what went wrong, without a traceback: exit 1 a bug, 2 the user's to mend.

    What an extra of curvote would bring is the user's to install: the one with which
    ``command``, the first word after curvote, goes.
    """
    try:
        yield
    except UserError as error:
        for problem in error.problems:
            lines.say(f"curvote: {problem.told}", "error")
        raise SystemExit(2) from None
    except ModuleNotFoundError as error:
        words = cure(error, _LEAST.get(command, _MOST))
        if words is None:
            raise
        lines.say(f"curvote: {words}", "error")
        raise SystemExit(2) from None
    except InternalError as error:
        lines.say(f"curvote: {error}. This is a bug in curvote.", "error")
        raise SystemExit(1) from None
