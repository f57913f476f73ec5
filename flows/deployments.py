"""Deployments for a Prefect server of one's own: prefect.yaml, and its registration.

One for each pipeline that carries a schedule. What a user adds to them in prefect.yaml
(job variables, tags, comments, deployments of other flows) stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from curvote.base.errors import UserError
from curvote.flows.server.flow_runs import delete_deployments
from curvote.flows.serving.schedules import schedule_fields, to_prefect
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.schema import normalise_address
from curvote.pipeline.config.yaml_document import as_one_line

# By its module: a worker needs curvote installed, and no copy of its code.
ENTRYPOINT = "curvote.flows.chain.chain"
_TAG = "curvote-deploy"


@dataclass(frozen=True)
class Deployments:
    """The deployments that a project's pipelines.yaml asks for.

    ``pool`` runs them, and ``folder`` is where its workers find the project; None: what
    prefect.yaml says, and the project's own folder.
    """

    project: Project
    pool: str | None = None
    folder: str | None = None

    @property
    def path(self) -> Path:
        """The path of prefect.yaml, beside pipelines.yaml."""
        return self.project.root / "prefect.yaml"

    def wanted(self) -> dict[str, dict[str, Any]]:
        """Return the deployments by name, as prefect.yaml states them.

        UserError: no pipeline has a schedule.
        """
        schedules = PipelinesFile(self.project).schedules()
        if not schedules:
            raise UserError(
                "no pipeline has a schedule, so there is nothing to deploy. Add"
                ' `schedule: {cron: "0 6 * * 1"}` to one; or deploy the flow itself:'
                f" `prefect deploy {ENTRYPOINT} -n NAME -p POOL`."
            )
        folder = self.folder or str(self.project.root.resolve())
        return {
            name: {
                "name": name,
                "entrypoint": ENTRYPOINT,
                "parameters": {"pipeline": name, "project": folder},
                "schedules": [_schedule_entry(settings)],
            }
            for name, settings in schedules.items()
        }

    def refused(self, url: str | None = None) -> list[str]:
        """Return the scheduled pipelines that this server, or any, may not start."""
        file = PipelinesFile(self.project)
        api = file.runtime().prefect.api
        configured = map(file.configure_pipeline, file.schedules())
        allowed = api and (url is None or url == api)
        return [c.name for c in configured if c.pipeline.production and not allowed]

    def merge(self) -> tuple[str, list[str]]:
        """Return the text of prefect.yaml as it should be, and what differs today.

        UserError: the file is no list of deployments, or nothing names a work pool.
        """
        yaml = YAML()
        yaml.width = 10_000
        try:
            text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
            document = yaml.load(text) or {"name": self.project.root.resolve().name}
            listed = document.setdefault("deployments", [])
            ours = {d["name"]: d for d in listed if d.get("entrypoint") == ENTRYPOINT}
            pools = [d["work_pool"]["name"] for d in ours.values()]
        except (OSError, YAMLError, TypeError, KeyError, AttributeError) as error:
            raise UserError(
                f"{self.path} cannot be read as Prefect's list of deployments"
                f" ({type(error).__name__}); mend it, or move it away."
            ) from None
        pool = self.pool or next(iter(pools), None)
        wanted, changes = self.wanted(), list[str]()
        for name, deployment in wanted.items():
            if name not in ours:
                more = {"pull": [], "tags": [_TAG], "work_pool": {"name": pool}}
                listed.append(deployment | more)
                changes.append(f"{name} is missing")
                continue
            entry = ours[name]
            if not self.folder:  # where workers find it, on another machine perhaps
                deployment["parameters"] |= dict(entry.get("parameters", {}))
                deployment["parameters"]["pipeline"] = name
            if self.pool:
                deployment["work_pool"] = entry["work_pool"] | {"name": self.pool}
            for key, value in deployment.items():
                before = json.loads(json.dumps(entry.get(key)))  # without YAML's types
                if before != value:
                    now, right = as_one_line(before), as_one_line(value)
                    changes.append(f"{name}: {key} is {now}, and should be {right}")
                    entry[key] = value
        for name in ours.keys() - wanted.keys():
            changes.append(f"{name} has no schedule in pipelines.yaml")
            listed.remove(ours[name])
        if pool is None:
            raise UserError("name the work pool whose workers run them: --pool NAME.")
        stream = StringIO()
        yaml.dump(document, stream)
        return stream.getvalue(), changes

    def register(self) -> str:
        """Register the deployments on Prefect's server; return its address.

        Those of this project that no pipeline asks for any more are deleted there.
        UserError: there is no such pool, or no server answers.
        """
        from prefect.client.orchestration import get_client
        from prefect.deployments.schedules import create_deployment_schedule_create
        from prefect.exceptions import ObjectNotFound

        from curvote.flows.chain import chain

        wanted, file = self.wanted(), PipelinesFile(self.project)
        form = chain.parameters.model_dump_for_openapi()
        form["properties"]["pipeline"]["enum"] = file.names()
        with get_client(sync_client=True) as client:
            url = normalise_address(str(client.api_url))
            if client.api_healthcheck() is not None:
                text = f"no Prefect server answers at {url}: is PREFECT_API_URL right?"
                raise UserError(text)
            try:
                client.read_work_pool(str(self.pool))
            except ObjectNotFound:
                raise UserError(
                    f"{url} has no work pool {self.pool!r}; `prefect work-pool create"
                    f" {self.pool} --type process` makes one."
                ) from None
            flow = client.create_flow_from_name(chain.name)
            for name, settings in file.schedules().items():
                client.create_deployment(
                    flow,
                    name,
                    entrypoint=ENTRYPOINT,
                    parameters=wanted[name]["parameters"],
                    schedules=[create_deployment_schedule_create(to_prefect(settings))],
                    description=chain.description,
                    work_pool_name=self.pool,
                    tags=[_TAG],
                    pull_steps=[],
                    parameter_openapi_schema=form,
                    enforce_parameter_schema=True,
                )
            folders = {d["parameters"]["project"] for d in wanted.values()}
            delete_deployments(client, _TAG, folders, wanted)
        return url


def _schedule_entry(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schedule as prefect.yaml states one."""
    fields = schedule_fields(settings)
    if "interval" not in fields:
        return fields
    seconds = fields["interval"].total_seconds()
    seconds = int(seconds) if seconds == int(seconds) else seconds
    return {"interval": seconds, "anchor_date": fields["anchor_date"].isoformat()}
