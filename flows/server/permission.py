"""Permission of a Prefect server to order a release about people.

A study runs on any server. A release is drawn where curvote's own server orders it,
or one whose address the project's pipelines.yaml names: that file is read here, where
the records are, and neither a parameter nor a variable of the run stands for it.
"""

from __future__ import annotations

from curvote.base.errors import UserError
from curvote.flows.server.private import api_url, is_own_server
from curvote.pipeline.config.file import ConfiguredPipeline, PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.schema import normalise_address


def ordering_server() -> str | None:
    """Return the address of the server that ordered this run; None: nobody's flow."""
    from prefect.context import FlowRunContext

    return None if FlowRunContext.get() is None else api_url()


def refuse_foreign_server(project: Project, configured: ConfiguredPipeline) -> None:
    """Refuse production that a server orders which the project does not name.

    To be called before anything is planned. UserError: names the server, and how to
    allow it.
    """
    settings = [setting.pipeline for setting in configured.settings]
    if not any(pipeline.production for pipeline in (configured.pipeline, *settings)):
        return
    url = ordering_server()
    if url is None or is_own_server(project.state, url):
        return
    api = PipelinesFile(project).runtime().prefect.api
    if api == normalise_address(url):
        return
    named = f"it names {api}" if api else "it names none"
    raise UserError(
        f"{configured.name} releases about people, and {normalise_address(url)} is not"
        " curvote's own Prefect server: nothing was drawn. Run it by `curvote run` or"
        f" `curvote serve` without PREFECT_API_URL; or let this server order releases"
        f" by its address in {project.pipelines_file} ({named}):"
        f' `runtime: {{prefect: {{api: "{normalise_address(url)}"}}}}`.'
    )
