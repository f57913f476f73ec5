"""An object store on loopback: one that works, and some that do not."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from pyarrow import fs

from curvote.base import object_store
from curvote.pipeline.config.project import Project
from tests import plain

BUCKET = "ours"
ROOT = f"s3://{BUCKET}/studies"
PATIENCE = 60  # seconds without a byte: a busy machine is no broken store
KEYS = {
    "AWS_ACCESS_KEY_ID": "who",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_REGION": "us-east-1",
}


@contextmanager
def started(host: str = "127.0.0.1") -> Iterator[str]:
    """Start moto's server; yield its address."""
    import logging

    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address=host, port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def bucket(address: str) -> fs.S3FileSystem:
    """Return what is in the store at an address, with the bucket emptied."""
    found = fs.S3FileSystem(
        endpoint_override=address, allow_bucket_creation=True, request_timeout=PATIENCE
    )
    found.create_dir(BUCKET)
    found.delete_dir_contents(BUCKET)
    return found


def point_at(
    monkeypatch: pytest.MonkeyPatch, address: str, seconds: int = PATIENCE
) -> None:
    """Let the environment name this address, which has ``seconds`` for an answer."""
    for name, value in {**KEYS, "AWS_ENDPOINT_URL": address}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(object_store, "SILENT_SECONDS", seconds)
    monkeypatch.setattr(object_store, "MAX_ATTEMPTS", 1)


def project(root: Path, **pipelines: object) -> Project:
    """Write a project whose server side is on the object store."""
    made = plain.write(root, **pipelines)
    text = made.pipelines_file.read_text()
    made.pipelines_file.write_text(f"runtime:\n  artifacts: {ROOT}\n{text}")
    return made


def files(store: fs.S3FileSystem) -> list[str]:
    """Return what is there, by its name below the root."""
    every = store.get_file_info(fs.FileSelector(BUCKET, recursive=True))
    root = ROOT.removeprefix("s3://") + "/"
    return sorted(info.path.removeprefix(root) for info in every if info.is_file)


@contextmanager
def answering(status: int) -> Iterator[str]:
    """Start a server that answers everything with one status."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@contextmanager
def silent() -> Iterator[str]:
    """Start a server that takes connections and never says anything."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
