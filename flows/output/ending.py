"""Command line ``curvote``; heavy imports stand inside commands, for a fast start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from curvote.errors import InternalError, UserError
from curvote.extras import install_hint
from curvote.flows.output import lines

# The extra with which a command goes; one that is not here reads pipelines.yaml.
_DEFAULT_EXTRA = "pipeline"
_COMMAND_EXTRAS = {
    "client": "laws",
    **dict.fromkeys(("advise", "audit", "data", "utility"), "method"),
    "ui": "tracking",
}


@contextmanager
def report_errors(command: str = "") -> Iterator[None]:
    """Print errors without a traceback: exit 1 for a bug, 2 for a user error.

    What an extra of curvote would bring is the user's to install: the one with which
    ``command``, the first word after curvote, goes.
    """
    try:
        yield
    except UserError as error:
        for problem in error.problems:
            lines.write_line(f"curvote: {problem.message}", "error")
        raise SystemExit(2) from None
    except ModuleNotFoundError as error:
        words = install_hint(error, _COMMAND_EXTRAS.get(command, _DEFAULT_EXTRA))
        if words is None:
            raise
        lines.write_line(f"curvote: {words}", "error")
        raise SystemExit(2) from None
    except InternalError as error:
        lines.write_line(f"curvote: {error}. This is a bug in curvote.", "error")
        raise SystemExit(1) from None
