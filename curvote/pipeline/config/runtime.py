"""Section `runtime` of pipelines.yaml: engine, storage, retention, notices."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, model_validator

from curvote.chain.settings import Strict, WholeNumber

_UNITS: Final = {"h": 3600, "d": 86_400, "w": 604_800}
_SPAN = re.compile(rf"(\d+) ?([{''.join(_UNITS)}])")
LEAST_SECONDS: Final = 3600
MOST_SECONDS: Final = 100 * 366 * 86_400  # dates end in the year 9999


def parse_span(span: str) -> int:
    """Return the seconds of a time span such as ``36h``, ``90d`` or ``12w``.

    Another form, less than an hour, or more than a hundred years: ValueError.
    """
    match = _SPAN.fullmatch(span.strip())
    if match is None:
        raise ValueError("write a span of time as 36h, 90d or 12w")
    total = int(match[1]) * _UNITS[match[2]]
    if total < LEAST_SECONDS:
        raise ValueError("a span under an hour would take what is still in use")
    if total > MOST_SECONDS:
        raise ValueError("a span over a hundred years reaches nothing")
    return total


def _check_span(span: str) -> str:
    parse_span(span)
    return span


Span = Annotated[str, AfterValidator(_check_span)]
Event = Literal["failed", "blocked", "missed", "recovered"]


class Retention(Strict):
    """How long to keep what no latest run needs; None: for ever."""

    runs: Span | None = None
    artifacts: Span | None = None


class Notify(Strict):
    """Whom to tell, by a command of one's own, when something did not go well."""

    on: tuple[Event, ...] = ("failed", "missed")
    command: tuple[str, ...] = ()


class MlflowFiles(Strict):
    """Where MLflow keeps its files, whatever its database is."""

    artifacts: str | None = None


class Runtime(Strict):
    """What runs the stages, where artifacts are, how long things stay, who is told.

    No secret stands here: those come from the environment.
    """

    engine: Literal["local", "threads", "dask"] = "local"
    workers: WholeNumber | None = None
    cluster: Annotated[str, Field(pattern=r"^(tcp|tls|ws|wss)://.+")] | None = None
    artifacts: Annotated[str, Field(pattern=r"^s3://[^/]+(/.*)?$")] | None = None
    retention: Retention = Retention()
    notify: Notify = Notify()
    mlflow: MlflowFiles = MlflowFiles()

    @model_validator(mode="after")
    def _check_cluster(self) -> Runtime:
        if self.cluster and self.engine != "dask":
            raise ValueError("only engine dask has a cluster; add engine: dask")
        return self
