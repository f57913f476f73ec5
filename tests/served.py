"""A project under `curvote serve`, and what somebody asks of its server."""

import json
import os
import subprocess
import time
from base64 import b64encode
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from curvote.flows.environment import prepare_environment, read_secret
from curvote.flows.server.private import read_serving
from curvote.flows.serving.schedules import read_schedules
from curvote.flows.serving.service import serve_schedules
from curvote.pipeline.config.project import Project
from tests.house import ROOT
from tests.processes import start_fork, until

LONG_ENOUGH = 300.0
Headers = dict[str, str]
_FLOW = """
import os, time
from pathlib import Path
from prefect import flow
from curvote.flows.server.flow_runs import tag_flow_run

@flow
def chain(pipeline: str, project: str) -> None:
    tag_flow_run()
    with (Path(project) / "fired").open("a") as file:
        file.write(f"{pipeline} {os.getpid()}\\n")
    time.sleep(300 if pipeline == "long" else 0)
"""


def start(root: Path) -> subprocess.Popen[str]:
    """Serve a project with a stand-in, which notes that it fired; ``long`` then lasts.

    Its notes stand in the file fired, what serve says in a new serve.log.
    """

    def serve() -> None:
        project = Project(root)
        prepare_environment(project.root)
        serve_schedules(project, read_schedules(project)[0], "standin:chain", port=0)

    (root / "standin.py").write_text(_FLOW)
    environment = {k: v for k, v in os.environ.items() if k != "PREFECT_API_URL"}
    environment["PYTHONPATH"] = f"{root}{os.pathsep}{ROOT}"
    with (root / "serve.log").open("w") as log:
        return start_fork(serve, cwd=root, env=environment, stdout=log, stderr=log)


@dataclass(frozen=True)
class Served:
    """A project under ``curvote serve``, and where its server listens."""

    project: Project
    port: int
    log: Path

    @property
    def secret_file(self) -> Path:
        return self.project.state / "serve.secret"

    def ask(
        self, method: str, path: str, body: Any = None, headers: Headers | None = None
    ) -> tuple[int, Headers, Any]:
        """Return status, headers in lower case, and the JSON or text of the answer.

        A server whose database is busy says 503, and is asked again.
        """
        for _ in range(30):
            answer = self._ask(method, path, body, headers)
            if answer[0] != 503:
                break
            time.sleep(1)
        return answer

    def _ask(
        self, method: str, path: str, body: Any, headers: Headers | None
    ) -> tuple[int, Headers, Any]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        said = {"Content-Type": "application/json"} | (headers or {})
        text = None if body is None else json.dumps(body)
        connection.request(method, f"/api{path}", text, said)
        answer = connection.getresponse()
        found = answer.read().decode()
        connection.close()
        named = {name.lower(): value for name, value in answer.getheaders()}
        is_json = named.get("content-type") == "application/json"
        return answer.status, named, json.loads(found) if is_json else found

    def credentials(self) -> Headers:
        secret = read_secret(self.secret_file)
        return {"Authorization": f"Basic {b64encode(secret.encode()).decode()}"}

    def logged_in(self) -> Headers:
        """Return the headers of somebody who has the secret, and Prefect's token."""
        known = self.credentials()
        _, _, token = self.ask("GET", "/csrf-token?client=me", headers=known)
        theirs = {"Prefect-Csrf-Token": token["token"], "Prefect-Csrf-Client": "me"}
        return known | theirs

    def deployments(self) -> list[dict[str, Any]]:
        _, _, found = self.ask("POST", "/deployments/filter", {}, self.logged_in())
        return list(found)


def up(project: Project, log: Path) -> Served:
    """Return the server once it listens and has its deployments."""

    def entry() -> dict[str, str] | None:
        return read_serving(project.state / "prefect")

    assert until(lambda: entry() is not None, LONG_ENOUGH), log.read_text()
    found = entry()
    assert found
    port = int(found["url"].removesuffix("/api").rpartition(":")[2])
    made = Served(project, port, log)
    assert until(lambda: bool(made.deployments()), LONG_ENOUGH), log.read_text()
    return made
