"""The files of deploy/ start commands that exist, with options that they take."""

import configparser
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import typer

from curvote.cli.app import app
from curvote.flows.server.private import START_TIMEOUT
from curvote.pipeline.config.yaml_document import parse_value
from tests.house import ROOT

DEPLOY = ROOT / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))
# A password in an address, or after its name; ${NAME} is a variable.
SECRET = re.compile(r"://[^\s/:@]+:[^\s$@]+@|_PASSWORD: +\"?[^\"$ ]")


def unit(path: Path) -> configparser.ConfigParser:
    """Return a unit of systemd; a key may stand in it more than once."""
    read = configparser.ConfigParser(strict=False, interpolation=None)
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read_string(path.read_text())
    return read


def compose() -> dict[str, Any]:
    """Return the compose file as a value."""
    found: dict[str, Any] = parse_value((DEPLOY / "compose.yaml").read_text())
    return found


def manifests() -> list[dict[str, Any]]:
    """Return the manifests for Kubernetes as values."""
    every = (DEPLOY / "kubernetes.yaml").read_text().split("\n---\n")
    return [parse_value(text) for text in every]


def containers() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each pod of a deployment with its container."""
    for manifest in manifests():
        if manifest["kind"] == "Deployment":
            pod = manifest["spec"]["template"]["spec"]
            (container,) = pod["containers"]
            yield pod, container


def started() -> Iterator[list[str]]:
    """Yield the arguments of every curvote that a file of deploy/ starts."""
    for path in UNITS:
        program, *rest = shlex.split(unit(path)["Service"]["ExecStart"])
        assert Path(program).name == "curvote"
        yield rest
    for service in compose()["services"].values():
        if service["image"] == "curvote":
            yield service["command"]
            test = service.get("healthcheck", {}).get("test", [])
            if test:
                yield test[2:]
    for _, container in containers():
        if "args" in container:
            yield container["args"]
        if "exec" in container.get("livenessProbe", {}):
            yield container["livenessProbe"]["exec"]["command"][1:]


@pytest.mark.parametrize("asked", list(started()), ids=" ".join)
def test_what_is_started_is_a_command_with_its_options(asked: list[str]) -> None:
    """Parsed by the command line itself, up to the last option; nothing runs."""
    command, rest = typer.main.get_command(app), asked
    while hasattr(command, "commands"):
        command, rest = command.commands[rest[0]], rest[1:]
    given = command.make_context(asked[0], list(rest)).params
    assert any(value is not None for value in given.values())


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_confines_its_service(path: Path) -> None:
    """Its own user, no way to more rights, and no place to write but its data."""
    service = unit(path)["Service"]
    assert service["User"] == "curvote"
    assert (service["NoNewPrivileges"], service["ProtectSystem"]) == ("yes", "strict")
    assert service["UMask"] == "0077"


def test_a_service_is_given_time_to_say_that_it_is_ready() -> None:
    """More than its server may take; systemd would give it 90 s."""
    services = [unit(path)["Service"] for path in UNITS]
    (told,) = [service for service in services if service.get("Type") == "notify"]
    assert int(told["TimeoutStartSec"]) >= 2 * START_TIMEOUT


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_knows_every_line(path: Path, tmp_path: Path) -> None:
    """It complains of nothing but the program, which is not installed here."""
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("no systemd-analyze on this machine")
    copy = tmp_path / path.name
    copy.write_text(
        path.read_text().replace("/srv/curvote/.venv/bin/curvote", "/bin/true")
    )
    done = subprocess.run(
        [verify, "verify", str(copy)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
    )
    told = [line for line in done.stderr.splitlines() if path.name in line]
    assert told == []


@pytest.mark.parametrize("manifest", manifests(), ids=lambda given: given["kind"])
def test_kubernetes_knows_every_line(manifest: dict[str, Any]) -> None:
    """By its own schemas, in which no other key is allowed."""
    kubernetes_validate.validate(manifest, "1.37", strict=True)


def test_a_pod_is_confined_and_a_worker_has_nothing_but_the_store() -> None:
    """No root, no rights, no place to write but what is mounted; no volume of data."""
    for pod, container in containers():
        assert pod["securityContext"]["runAsUser"] == 10001
        assert pod["automountServiceAccountToken"] is False
        confined = container["securityContext"]
        assert confined["readOnlyRootFilesystem"]
        assert not confined["allowPrivilegeEscalation"]
        volumes = {volume["name"] for volume in pod["volumes"]}
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    pods = {container["name"]: pod for pod, container in containers()}
    assert [*map(list, pods["worker"]["volumes"])] == [["name", "emptyDir"]]
    (of_worker,) = [c["envFrom"] for _, c in containers() if c["name"] == "worker"]
    assert of_worker == [{"secretRef": {"name": "curvote-store"}}]


def test_dask_takes_the_options_that_pods_give_it() -> None:
    """Its command line reads them; nothing starts."""
    commands = [c["command"][1:] for _, c in containers() if "command" in c]
    for name, *words in commands:
        module = import_module(f"distributed.cli.dask_{name}")
        assert module.main.make_context(name, list(words)).params
    assert [name for name, *_ in commands] == ["scheduler", "worker"]


def test_a_selector_finds_the_pods_that_it_means() -> None:
    """A deployment those it makes; a service those of its name."""
    parts = {}
    for manifest in manifests():
        if manifest["kind"] == "Deployment":
            spec = manifest["spec"]
            labels = spec["template"]["metadata"]["labels"]
            assert spec["selector"]["matchLabels"] == labels
            parts[labels["part"]] = manifest["metadata"]["name"]
    services = [m for m in manifests() if m["kind"] == "Service"]
    for service in services:
        part = service["spec"]["selector"]["part"]
        assert parts[part] == service["metadata"]["name"]


def test_no_secret_stands_in_a_file() -> None:
    """Passwords come from the environment of whoever starts it."""
    for path in sorted(DEPLOY.rglob("*")):
        found = SECRET.findall(path.read_text()) if path.is_file() else []
        assert found == [], path


def test_the_image_is_made_of_files_that_exist() -> None:
    """What the container file copies is there, and the compose file mounts likewise."""
    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    for line in (line for line in lines if line.startswith("COPY ")):
        *sources, _ = line.split()[1:]
        assert all((ROOT / source).exists() for source in sources), line
    mounts = [m for s in compose()["services"].values() for m in s.get("volumes", ())]
    files = [mount.split(":")[0] for mount in mounts if mount.startswith(".")]
    made = {"./certificates"}  # the operator's own
    assert all((DEPLOY / name).exists() for name in {*files} - made), files
