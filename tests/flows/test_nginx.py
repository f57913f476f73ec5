"""deploy/nginx.conf, run on loopback: TLS, limits, and no word of who asked."""

import datetime
import http.client
import json
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from tests.envelope_service import Service, answered, invite, project, serving

CONF = Path(__file__).parents[2] / "deploy" / "nginx.conf"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
pytestmark = pytest.mark.skipif(NGINX is None, reason="no nginx on this machine")


class Front:
    """A running nginx: whoever asks it trusts its certificate."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port

    def connect(self) -> http.client.HTTPSConnection:
        """Return a connection over TLS."""
        made = str(self.folder / "certificates" / "fullchain.pem")
        trusted = ssl.create_default_context(cafile=made)
        context = "127.0.0.1", self.port
        return http.client.HTTPSConnection(*context, timeout=30, context=trusted)

    def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, Any]:
        """Return status, and headers and body, of an answer."""
        connection = self.connect()
        headers = {"Content-Type": "application/json", "User-Agent": "canary-agent"}
        connection.request(method, path, body, headers)
        told = connection.getresponse()
        text = told.read()
        connection.close()
        return told.status, (dict(told.headers), text)


def certificate(folder: Path) -> None:
    """Write a certificate of loopback, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    folder.mkdir()
    (folder / "fullchain.pem").write_bytes(made.public_bytes(Encoding.PEM))
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "privkey.pem").write_bytes(text)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """Serve a project's intake."""
    with serving(project(tmp_path / "p")) as running:
        yield running


@pytest.fixture
def front(tmp_path: Path, service: Service) -> Iterator[Front]:
    """Run nginx on free ports with a certificate of its own, and a lower rate."""
    folder = tmp_path / "front"
    folder.mkdir()
    certificate(folder / "certificates")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    text = CONF.read_text()
    for old, new in (
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("127.0.0.1:8090", f"127.0.0.1:{service.port}"),
        ("/run/nginx.pid", f"{folder}/nginx.pid"),
        ("worker_processes auto", "worker_processes 1"),
        ("rate=20r/s", "rate=1r/m"),  # a slow machine must reach it
        ("burst=200", "burst=20"),
    ):
        assert old in text
        text = text.replace(old, new)
    (folder / "nginx.conf").write_text(text)
    assert NGINX is not None
    command = [NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf")]
    command += ["-e", str(folder / "start.log"), "-g", "daemon off;"]
    subprocess.run([*command[:-2], "-t"], check=True, capture_output=True)
    running = subprocess.Popen(command)
    try:
        until = time.monotonic() + 10
        while socket.socket().connect_ex(("127.0.0.1", port)):
            assert time.monotonic() < until
            time.sleep(0.05)
        yield Front(folder, port)
    finally:
        running.terminate()
        running.wait(10)


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_envelopes_come_through_and_nothing_of_whom(
    tmp_path: Path, front: Front, service: Service
) -> None:
    """Over TLS: accepted once; health and metrics stay inside; nothing is written."""
    sent = answered(invite(project(tmp_path / "p").intake, 5))
    assert [front.ask("POST", "/v1/envelopes", d)[0] for d in sent] == [201] * 5
    assert front.ask("POST", "/v1/envelopes", sent[0])[0] == 200
    status, (headers, _) = front.ask("POST", "/v1/envelopes", b"nothing")
    assert (status, headers["Content-Type"]) == (400, "application/problem+json")
    for path in ("/metrics", "/healthz", "/readyz", "/"):
        assert front.ask("GET", path)[0] == 404
    assert front.ask("GET", "/v1/envelopes")[0] == 403
    assert front.ask("GET", f"/v1/tasks/{'0' * 64}")[0] == 404
    assert front.ask("POST", "/v1/envelopes", b"x" * 300_000)[0] == 413
    plain = Service(service.process, service.log, front.port).send(sent[0])
    assert plain.status == 400  # without TLS there is no way in
    written = [p for p in front.folder.rglob("*") if p.is_file()]
    for path in written:
        assert b"canary-agent" not in path.read_bytes()
        assert path.name != "start.log" or not path.read_bytes()


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_who_asks_too_often_or_too_early_is_told_to_come_back(
    front: Front, service: Service
) -> None:
    """429 over the rate, 503 while no service is there: both with Retry-After."""
    service.end()
    status, (headers, text) = front.ask("GET", f"/v1/tasks/{'0' * 64}")
    assert (status, headers["Retry-After"]) == (503, "5")
    assert json.loads(text)["type"].endswith(":unavailable")
    seen = set()
    for _ in range(30):
        status, (headers, text) = front.ask("GET", f"/v1/tasks/{'0' * 64}")
        seen.add((status, headers["Retry-After"], json.loads(text)["status"]))
    assert seen == {(503, "5", 503), (429, "2", 429)}
