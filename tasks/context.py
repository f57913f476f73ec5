"""Run context shared by all tasks, and errors without private text."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from curvote.base.errors import InternalError, UserError
from curvote.pipeline.config.project import Project
from curvote.pipeline.plan.step import Step
from curvote.pipeline.run.engines import Engine

Progress = Callable[[Step, int, int], None]


@dataclass(frozen=True)
class TaskContext:
    """The project, engine and progress callback that all tasks of a run share."""

    project: Project
    engine: Engine
    block: int | None
    progress: Progress


class RedactedError(Exception):
    """An error whose message is its kind only; ``original`` is what happened.

    Prefect keeps the message of what ends a run in its database, and a server's log of
    a run prints the messages of all causes: this one names none.
    """

    def __init__(self, original: Exception) -> None:
        super().__init__(type(original).__name__)
        self.original = original

    def __reduce__(self) -> tuple[type[Exception], tuple[str]]:
        """Leave a copy the kind only: Prefect pickles what ends a run."""
        return Exception, (str(self),)


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
    except Exception as error:  # noqa: BLE001 - raised, without its words
        raise RedactedError(error) from None
