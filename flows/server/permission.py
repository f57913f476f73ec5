"""Permission of a Prefect server to order a release about people.

A study runs on any server, but one that the project does not name changes neither whose
data it reads nor what code. A release is drawn where curvote's own server orders it,
or one whose address the project's pipelines.yaml names: that file is read here, where
the records are, and neither a parameter nor a variable of the run stands for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from curvote.base.errors import UserError
from curvote.flows.server.private import api_url, is_own_server
from curvote.pipeline.config.file import ConfiguredPipeline, PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.schema import normalise_address
from curvote.pipeline.config.yaml_document import parse_value


def ordering_server() -> str | None:
    """Return the address of the server that ordered this run; None: nobody's flow."""
    from prefect.context import FlowRunContext

    return None if FlowRunContext.get() is None else api_url()


def foreign_server(project: Project) -> str | None:
    """Return the address that orders this run, where the project does not name it."""
    url = ordering_server()
    if url is None or is_own_server(project.state, url):
        return None
    url = normalise_address(url)
    return None if PipelinesFile(project).runtime().prefect.api == url else url


def refuse_foreign_overrides(project: Project, overrides: Iterable[str]) -> None:
    """Refuse another data set or file, and code by its place, for a foreign server.

    To be called before anything is imported. UserError: names what it asked for.
    """
    url = foreign_server(project)
    for override in overrides if url else ():
        path, _, text = override.partition("=")
        named = [path, *_names(parse_value(text))]
        # A colon is in the place of a class, and in a kind of file before its name.
        if any("source" in name.split(".") or ":" in name for name in named):
            raise UserError(
                f"overrides: {override!r} names a data set or code, and {url} is not a"
                " Prefect server of this project: nothing was read. Write a pipeline"
                f" for it into {project.pipelines_file}, or name the server there:"
                f' `runtime: {{prefect: {{api: "{url}"}}}}`.'
            )


def _names(value: Any) -> Iterator[str]:
    """Yield all keys and texts of a setting's value."""
    if isinstance(value, dict):
        yield from map(str, value)
        value = value.values()
    elif not isinstance(value, list):
        yield str(value)
        return
    for part in value:
        yield from _names(part)


def refuse_foreign_server(project: Project, configured: ConfiguredPipeline) -> None:
    """Refuse production that a server orders which the project does not name.

    To be called before anything is planned. UserError: names the server, and how to
    allow it.
    """
    settings = [setting.pipeline for setting in configured.settings]
    if not any(pipeline.production for pipeline in (configured.pipeline, *settings)):
        return
    url = foreign_server(project)
    if url is None:
        return
    api = PipelinesFile(project).runtime().prefect.api
    named = f"it names {api}" if api else "it names none"
    raise UserError(
        f"{configured.name} releases about people, and {url} is not"
        " curvote's own Prefect server: nothing was drawn. Run it by `curvote run` or"
        f" `curvote serve` without PREFECT_API_URL; or let this server order releases"
        f" by its address in {project.pipelines_file} ({named}):"
        f' `runtime: {{prefect: {{api: "{url}"}}}}`.'
    )
