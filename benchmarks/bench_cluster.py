"""A cluster that shares nothing: three workers with an object store and the wheel.

Each has a mount namespace of its own, in which the project's folder is empty, and a
network namespace that a veth pair joins to this machine; it runs the wheel of this
checkout. `demo`, `phonemes` and `heart` (20 replicates; ``--full``: as shipped) must
give the digests of a local run though one worker is killed half way, which must be
named. So must be a worker with one line of code more, one that may only read the store,
and the last of five that one block ends. Fails where one of these is not so. It needs
to be root; elsewhere it is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import boto3
from distributed import Client

from benchmarks.history import ROOT, record
from curvote.base.errors import UserError
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import as_yaml, parse_value
from curvote.pipeline.run.engines import Engine, choose_engine
from curvote.pipeline.run.execution import execute_step
from curvote.pipeline.run.planner import make_plan
from curvote.pipeline.store.artifacts import artifact
from tests import clusters, dying, object_store
from tests.wheel.building import wheel

HOST: Final = "10.213.7.1"
HOSTS: Final = ("10.213.7.2", "10.213.7.3", "10.213.7.4")
STUDIES: Final = ("demo", "phonemes", "heart")
# What the other studies need to take about as long.
HEART: Final = 20
# The block after which a worker is killed: about half way in the smallest.
KILL: Final = 40

Start = Callable[..., AbstractContextManager[subprocess.Popen[bytes]]]


def ip(words: str) -> None:
    """Call ip, which says itself what is wrong."""
    subprocess.run(["ip", *words.split()], check=True)


@contextmanager
def networks() -> Iterator[dict[str, str]]:
    """Yield a network namespace for each address, joined to ours by veth pairs."""
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


def unpacked(folder: Path) -> Path:
    """Return a folder with what the wheel of this checkout installs."""
    with zipfile.ZipFile(wheel(folder)) as built:
        built.extractall(folder / "installed")
    return folder / "installed"


@contextmanager
def engine_of(project: Project, workers: int, lines: list[str]) -> Iterator[Engine]:
    """Yield the engine of the project's file, once so many workers are there."""
    stated = PipelinesFile(project).runtime()
    with Client(stated.cluster, set_as_default=False) as client:
        client.wait_for_workers(workers, timeout=60)
    with choose_engine(project, stated, None, None, tell=lines.append) as engine:
        yield engine


def tables(
    project: Project, name: str, count: int | None, engine: Engine, progress: Any = None
) -> tuple[float, dict[tuple[str, str], Any]]:
    """Run a study; return seconds, and each artifact's tables with their SHA-256."""
    start = time.perf_counter()
    configured = PipelinesFile(project).configure_pipeline(name, replicates=count)
    plan = make_plan(project, configured, fetch=True)
    for step in plan.steps_to_run():
        execute_step(project, step, engine=engine, block=5, progress=progress)
    took = time.perf_counter() - start
    return took, {s.id: artifact(project, *s.id).manifest["tables"] for s in plan.steps}


def study(
    project: Project, alone: Project, start: Start, name: str, full: bool
) -> tuple[float, bool]:
    """Run a study both ways; return the ratio of seconds, and whether all is so."""
    count = None if full or name != "heart" else HEART
    local, expected = tables(alone, name, count, Engine("local", 3))
    blocks: list[int] = []
    lines: list[str] = []
    with ExitStack() as ending:
        workers = [ending.enter_context(start(host)) for host in HOSTS]

        def kill(done: int, _of: int) -> None:
            blocks.append(done)
            if len(blocks) == KILL:
                workers[1].kill()

        with engine_of(project, len(HOSTS), lines) as engine:
            took, made = tables(project, name, count, engine, kill)
    same = made == expected
    named = [line.split(":")[1] for line in lines] == [f"//{HOSTS[1]}"]
    print(f"{name}: {len(made)} artifacts, {len(blocks)} blocks; same digests: {same}")
    print(f"  {took:.1f} s, local {local:.1f} s; {'; '.join(lines)}", flush=True)
    return took / local, same and named


def refused(project: Project, workers: int, host: str, words: str) -> bool:
    """Say whether a worker is refused by its address, in these words, and no other."""
    try:
        with engine_of(project, workers, []) as engine:
            assert engine.transit
    except UserError as error:
        print(f"refused: {error}", flush=True)
        others = {*HOSTS} - {host}
        text = str(error)
        return host in text and words in text and not any(o in text for o in others)
    return False


def other_version(project: Project, start: Start, installed: Path, root: Path) -> bool:
    """Say whether a worker with one line of code more is named."""
    shutil.copytree(installed, root / "other")
    with (root / "other" / "curvote" / "__init__.py").open("a") as module:
        module.write("# another version\n")
    with start(HOSTS[0]), start(HOSTS[2], PYTHONPATH=str(root / "other")):
        return refused(project, 2, HOSTS[2], "curvote of code")


def no_rights(project: Project, start: Start) -> bool:
    """Say whether a worker is named whose keys the store lets read alone."""
    store = os.environ["AWS_ENDPOINT_URL"]
    iam = boto3.client("iam", endpoint_url=store, region_name="us-east-1")
    keys = {}
    for name, allowed in (("run", "s3:*"), ("reader", ["s3:Get*", "s3:List*"])):
        iam.create_user(UserName=name)
        made = iam.create_access_key(UserName=name)["AccessKey"]
        pair = made["AccessKeyId"], made["SecretAccessKey"]
        keys[name] = dict(zip(object_store.KEYS, pair, strict=False))
        statement = {"Effect": "Allow", "Action": allowed, "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam.put_user_policy(UserName=name, PolicyName=name, PolicyDocument=policy)
    plain = {"Content-Type": "text/plain"}
    reset = urllib.request.Request(f"{store}/moto-api/reset-auth", b"0", plain)
    urllib.request.urlopen(reset).close()  # from now on rights are asked for
    os.environ |= keys["run"]
    with start(HOSTS[0]), start(HOSTS[1], **keys["reader"]):
        return refused(project, 2, HOSTS[1], "no right to write it")


def last_of_many(project: Project, start: Start) -> bool:
    """Say whether a block that ends each worker is given up, and the last one named."""
    paths = {"PYTHONPATH": clusters.PATHS, "nanny": "--nanny"}
    try:
        with (
            start(HOSTS[0], **paths),
            engine_of(project, 1, []) as engine,
        ):
            list(engine.run(dying.always, range(2)))
    except UserError as error:
        print(f"given up: {error}", flush=True)
        return f"5 workers died at one block, the last one tcp://{HOSTS[0]}" in str(
            error
        )
    return False


def main() -> int:
    """Run all of it, and compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--full", action="store_true", help="heart as it is shipped")
    full = parser.parse_args().full
    if os.getuid() != 0:
        print("left out: namespaces of networks are root's")
        return 0
    os.environ |= object_store.KEYS
    with ExitStack() as ending:
        root = Path(ending.enter_context(TemporaryDirectory()))
        names = ending.enter_context(networks())
        os.environ["AWS_ENDPOINT_URL"] = ending.enter_context(
            object_store.started(HOST)
        )
        object_store.bucket(os.environ["AWS_ENDPOINT_URL"])
        failures = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "4"}
        found = clusters.scheduler(HOST, PYTHONPATH=clusters.PATHS, **failures)
        address, _ = ending.enter_context(found)
        project, alone = Project(root / "project"), Project(root / "alone")
        file = parse_value((ROOT / "pipelines.yaml").read_text())
        runtime = {"engine": "dask", "cluster": address, "artifacts": object_store.ROOT}
        for made, more in ((project, {"runtime": runtime}), (alone, {})):
            made.root.mkdir()
            made.pipelines_file.write_text(as_yaml(file | more))
        installed = unpacked(root)

        def start(host: str, **env: str) -> Any:
            before = ["ip", "netns", "exec", names[host]]
            before += clusters.without(project.root)
            nanny = env.pop("nanny", "--no-nanny")
            env = {"HOME": "/nowhere", "PYTHONPATH": str(installed)} | env
            return clusters.worker(address, nanny, before, **env)

        studies = {n: study(project, alone, start, n, full) for n in STUDIES}
        sound = {name: right for name, (_, right) in studies.items()}
        sound["killed five times"] = last_of_many(project, start)
        sound["another version"] = other_version(project, start, installed, root)
        sound["no rights"] = no_rights(project, start)
    print(f"as promised: {sound}")
    ratios = {f"{name}: cluster / local": ratio for name, (ratio, _) in studies.items()}
    failed = record("cluster", ratios)
    return failed if all(sound.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
