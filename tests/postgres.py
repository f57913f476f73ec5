"""A PostgreSQL of the machine's own packages, for tests: started, used and ended."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

USER = "postgres"


def binaries() -> Path | None:
    """Return the folder of a server's programs, the latest version's."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return places[-1].parent if places else None


def missing() -> str | None:
    """Say why no server can be started here, None if one can."""
    if binaries() is None:
        return "no PostgreSQL server here (initdb is in no folder of programs)"
    if (
        os.geteuid() == 0
        and subprocess.run(["id", USER], capture_output=True, check=False).returncode
    ):
        return f"PostgreSQL does not run as root, and there is no user {USER}"
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed (curvote[postgres])"
    return None


@dataclass
class Server:
    """A server in a folder of its own, on a free port of loopback."""

    folder: Path
    port: int
    settings: str = ""

    @property
    def url(self) -> str:
        """Where its database is."""
        return f"postgresql://{USER}:secret-word@127.0.0.1:{self.port}/postgres"

    def run(self, *words: str) -> None:
        """Run one of its programs as its user."""
        place = binaries()
        assert place is not None
        command, own = [str(place / words[0]), *words[1:]], {}
        if os.geteuid() == 0:
            group = pwd.getpwnam(USER).pw_gid
            own = {"user": USER, "group": group, "extra_groups": [group]}
        subprocess.run(
            command, check=True, capture_output=True, cwd="/", timeout=120, **own
        )

    def start(self) -> None:
        """Start it, and wait for it."""
        options = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c shared_buffers=16MB"
            f" -k {self.folder} {self.settings}"
        )
        data, log = str(self.folder / "data"), str(self.folder / "log")
        self.run("pg_ctl", "-D", data, "-l", log, "-w", "-o", options, "start")

    def stop(self) -> None:
        """End it at once, as a crash would."""
        data = str(self.folder / "data")
        self.run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")


@contextmanager
def server(settings: str = "") -> Iterator[Server]:
    """Run a server; it and its folder are gone at the end."""
    folder = Path(tempfile.mkdtemp(prefix="curvote-pg-"))
    if os.geteuid() == 0:
        shutil.chown(folder, USER)
    folder.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    made = Server(folder, port, settings)
    data = str(folder / "data")
    made.run("initdb", "-D", data, "-A", "trust", "-E", "UTF8", "--no-sync")
    made.start()
    try:
        yield made
    finally:
        if (folder / "data" / "postmaster.pid").exists():
            made.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgres() -> Iterator[str]:
    """Yield the address of an empty database."""
    with server() as made:
        yield made.url
