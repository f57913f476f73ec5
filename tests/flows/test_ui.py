"""MLflow's pages stand behind a door: another user of the machine reads nothing."""

import asyncio
import signal
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from curvote.flows.environment import new_secret, write_secret
from curvote.flows.server.process import CookieGate
from curvote.flows.tracking.ui import SECRET_FILE
from curvote.pipeline.config.project import Project
from tests.prepared import put_databases
from tests.processes import start_command

ADDRESS = "http://127.0.0.1:5000"
TICKET, SECRET = "ticket", "curvote:secret"


class Browser:
    """A browser at the door of a page: it keeps cookies, and follows no link."""

    def __init__(self, door: CookieGate) -> None:
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(door), base_url=ADDRESS
        )

    def request(self, method: str, path: str, **how: Any) -> httpx.Response:
        return asyncio.run(self.client.request(method, path, **how))

    def get(self, path: str, **how: Any) -> httpx.Response:
        return self.request("GET", path, **how)


@pytest.fixture
def browser() -> Browser:
    """Return a browser that was never here."""

    async def page(_request: object) -> PlainTextResponse:
        return PlainTextResponse("numbers")

    app = Starlette(routes=[Route("/{path:path}", page, methods=["GET", "POST"])])
    door = CookieGate(app, ADDRESS, SECRET, TICKET, "/#/runs")
    return Browser(door)


@pytest.mark.parametrize("path", ["/", "/ajax-api/2.0/mlflow/runs/search", "/static/x"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_stranger_reads_nothing(browser: Browser, path: str, method: str) -> None:
    """Neither the page nor the API nor a file, with whatever cookie or password."""
    for headers in (
        {},
        {"cookie": "curvote-5000="},
        {"cookie": f"curvote-5000={TICKET}"},
        {"authorization": "Basic Y3Vydm90ZTp3cm9uZw=="},
    ):
        told = browser.request(method, path, headers=headers)
        assert told.status_code == 401
        assert "numbers" not in told.text


def test_the_link_opens_once(browser: Browser) -> None:
    """For one browser, which is then known by a cookie that no script can read."""
    assert browser.get("/enter/").status_code == 403
    assert browser.get("/enter/other").status_code == 403
    led = browser.get(f"/enter/{TICKET}")
    assert (led.status_code, led.headers["location"]) == (303, "/#/runs")
    kept = led.headers["set-cookie"].lower()
    assert "httponly" in kept
    assert "samesite=strict" in kept
    assert browser.get("/").text == "numbers"
    assert browser.request("POST", "/ajax-api").text == "numbers"
    browser.client.cookies.clear()
    assert browser.get(f"/enter/{TICKET}").status_code == 403
    assert browser.get("/").status_code == 401


def test_another_page_is_not_let_in_with_its_visitors_cookie(
    browser: Browser,
) -> None:
    """Nor another name of this machine, as a rebound address would have."""
    browser.get(f"/enter/{TICKET}")
    evil = {"origin": "http://evil.example"}
    assert browser.request("POST", "/ajax-api", headers=evil).status_code == 403
    assert browser.get("/", headers={"host": "evil.example:5000"}).status_code == 403


def test_a_program_gives_the_secret(browser: Browser) -> None:
    """As MLflow's own client does by its two variables."""
    assert browser.get("/", auth=("curvote", "secret")).text == "numbers"


@pytest.mark.usefixtures("own_variables")
def test_the_pages_themselves_ask(tmp_path: Path, databases: Path) -> None:
    """By the command, a process: MLflow's app must take our settings."""
    project = put_databases(databases, Project(tmp_path))
    (tmp_path / "pipelines.yaml").write_text("pipelines: {}\n")
    shown = start_command("ui", "--port", "0", cwd=tmp_path, stdout=subprocess.PIPE)
    try:
        assert shown.stdout is not None
        link = shown.stdout.readline().split()[-1]
        address = link.partition("/enter/")[0]
        transport = httpx.HTTPTransport(retries=30)
        with httpx.Client(transport=transport, base_url=address, timeout=60) as client:
            assert client.get("/").status_code == 401
            assert client.get(link).status_code == 303
            asked = {"max_results": 1}
            found = client.post("/ajax-api/2.0/mlflow/experiments/search", json=asked)
            assert [each["name"] for each in found.json()["experiments"]] == ["Default"]
    finally:
        shown.send_signal(signal.SIGTERM)
        shown.communicate(timeout=30)
    secret = project.state / SECRET_FILE
    assert secret.stat().st_mode & 0o77 == 0
    assert link.rpartition("/")[2] not in secret.read_text()


def test_each_start_has_another_secret(tmp_path: Path) -> None:
    """What was left by an earlier one opens nothing."""
    write_secret(tmp_path / "s", first := new_secret())
    write_secret(tmp_path / "s", new_secret())
    assert first not in (tmp_path / "s").read_text()
