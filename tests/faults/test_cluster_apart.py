"""Three workers with mounts and a network of their own, and nothing but a store."""

import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest

from curvote.base.errors import UserError
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import as_yaml, parse_value
from curvote.pipeline.run.engines import Engine, choose_engine
from curvote.pipeline.run.execution import execute_step
from curvote.pipeline.run.planner import make_plan
from curvote.pipeline.store.artifacts import artifact
from tests import clusters, object_store
from tests.house import ROOT

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(os.getuid() != 0, reason="namespaces of networks are root's"),
]
HOST, HOSTS = "10.213.7.1", ("10.213.7.2", "10.213.7.3", "10.213.7.4")
# As shipped, but for the number of repetitions where that takes long on two cores.
STUDIES = {"demo": None, "phonemes": None, "heart": 20}


def ip(words: str) -> None:
    """Call ip, which says itself what is wrong."""
    subprocess.run(["ip", *words.split()], check=True)


@pytest.fixture(scope="module")
def networks() -> Iterator[dict[str, str]]:
    """Return a network namespace for each address, joined to ours by veth pairs."""
    names = {host: f"curvote{host[-1]}" for host in HOSTS}
    with ExitStack() as ending:
        ip("link add curvote0 type bridge")
        ending.callback(ip, "link del curvote0")
        ip(f"addr add {HOST}/24 dev curvote0")
        ip("link set curvote0 up")
        for host, name in names.items():
            ip(f"netns add {name}")
            ending.callback(ip, f"netns del {name}")
            ip(f"link add {name} type veth peer name eth0 netns {name}")
            ip(f"link set {name} master curvote0 up")
            ip(f"-n {name} addr add {host}/24 dev eth0")
            ip(f"-n {name} link set eth0 up")
            ip(f"-n {name} link set lo up")
        yield names


Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def cluster(
    networks: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Project, Start]]:
    """Return a project with a cluster, and what starts a worker at an address."""
    project = Project(tmp_path / "project")
    project.root.mkdir()
    with ExitStack() as ending:
        store = ending.enter_context(object_store.started(HOST))
        object_store.point_at(monkeypatch, store)
        object_store.bucket(store)
        found = clusters.scheduler(HOST, PYTHONPATH=clusters.PATHS)
        address, _ = ending.enter_context(found)
        file = parse_value((ROOT / "pipelines.yaml").read_text())
        runtime = {"engine": "dask", "cluster": address, "artifacts": object_store.ROOT}
        project.pipelines_file.write_text(as_yaml(file | {"runtime": runtime}))

        def start(host: str, **env: str) -> subprocess.Popen[bytes]:
            before = ["ip", "netns", "exec", networks[host]]
            before += clusters.without(project.root)
            env = {"HOME": "/nowhere", "PYTHONPATH": clusters.PATHS} | env
            made = clusters.worker(address, before=before, **env)
            return ending.enter_context(made)

        yield project, start


@contextmanager
def engine_of(project: Project, lines: list[str]) -> Iterator[Engine]:
    """Yield the engine that the project's file names."""
    stated = PipelinesFile(project).runtime()
    with choose_engine(project, stated, None, None, tell=lines.append) as engine:
        yield engine


def digests(
    project: Project, name: str, engine: Engine, progress: Any = None
) -> dict[tuple[str, str], Any]:
    """Run a study and return the tables of each artifact, with their SHA-256."""
    file = PipelinesFile(project)
    plan = make_plan(
        project, file.configure_pipeline(name, replicates=STUDIES[name]), fetch=True
    )
    for step in plan.steps_to_run():
        execute_step(project, step, engine=engine, block=5, progress=progress)
    return {s.id: artifact(project, *s.id).manifest["tables"] for s in plan.steps}


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_gives_its_digests_though_a_worker_is_killed(
    cluster: tuple[Project, Start], tmp_path: Path, name: str
) -> None:
    """In the middle, by kill -9; it is named, and two others do all."""
    project, start = cluster
    alone = Project(tmp_path / "alone")
    alone.root.mkdir()
    shutil.copy(ROOT / "pipelines.yaml", alone.root)
    expected = digests(alone, name, Engine("local", 2))
    workers = [start(host) for host in HOSTS]
    lines: list[str] = []
    blocks: list[int] = []

    def kill(done: int, _of: int) -> None:
        blocks.append(done)
        if len(blocks) == 40:
            workers[1].kill()

    with engine_of(project, lines) as engine:
        made = digests(project, name, engine, kill)
    assert made == expected
    (line,) = [line for line in lines if "left the cluster" in line]
    assert line.startswith(f"tcp://{HOSTS[1]}:")


def test_a_worker_of_another_version_is_named(
    cluster: tuple[Project, Start], tmp_path: Path
) -> None:
    """By one line of code more, whatever its wheel says."""
    project, start = cluster
    shutil.copytree(ROOT / "curvote", tmp_path / "other" / "curvote")
    with (tmp_path / "other" / "curvote" / "__init__.py").open("a") as module:
        module.write("# another version\n")
    start(HOSTS[0])
    start(HOSTS[2], PYTHONPATH=f"{tmp_path / 'other'}:{clusters.PATHS}")
    with engine_of(project, []) as engine:
        _both_are_there(engine)
        with pytest.raises(UserError, match=f"tcp://{HOSTS[2]}:.*curvote of code"):
            assert engine.transit


def test_a_worker_that_may_only_read_is_named(
    cluster: tuple[Project, Start], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its keys are its own; the store itself refuses what they do not allow."""
    project, start = cluster
    store = os.environ["AWS_ENDPOINT_URL"]
    iam = boto3.client("iam", endpoint_url=store, region_name="us-east-1")
    keys = {}
    for name, allowed in (("run", "s3:*"), ("reader", ["s3:Get*", "s3:List*"])):
        iam.create_user(UserName=name)
        keys[name] = iam.create_access_key(UserName=name)["AccessKey"]
        statement = {"Effect": "Allow", "Action": allowed, "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam.put_user_policy(UserName=name, PolicyName=name, PolicyDocument=policy)
    plain = {"Content-Type": "text/plain"}
    reset = urllib.request.Request(f"{store}/moto-api/reset-auth", b"0", plain)
    urllib.request.urlopen(reset).close()  # from now on rights are asked for

    def of(name: str) -> dict[str, str]:
        pair = keys[name]["AccessKeyId"], keys[name]["SecretAccessKey"]
        return dict(zip(object_store.KEYS, pair, strict=False))

    for variable, value in of("run").items():
        monkeypatch.setenv(variable, value)
    start(HOSTS[0])
    start(HOSTS[1], **of("reader"))
    with engine_of(project, []) as engine:
        _both_are_there(engine)
        with pytest.raises(UserError) as refused:
            assert engine.transit
    assert f"tcp://{HOSTS[1]}:" in str(refused.value)
    assert "no right to write it" in str(refused.value)
    assert HOSTS[0] not in str(refused.value)


def _both_are_there(engine: Engine) -> None:
    from distributed import Client

    with Client(engine.cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
