"""A raw file is found, downloaded and kept, or the reason is said."""

import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.data import raw_files
from curvote.data.public import phonemes
from tests.phoneme_file import TEXT, extra_row, packed, put, sha256, write_sources


def located(root: Path) -> raw_files.RawFile:
    """Return the raw file of the phonemes, which must be found."""
    found = raw_files.locate(root, "phonemes")
    assert found
    return found


def kept(root: Path) -> list[str]:
    """Return what lies in data/raw, hidden leftovers too."""
    return sorted(path.name for path in (root / "data" / "raw").iterdir())


@pytest.mark.parametrize("zipped", [False, True])
def test_a_file_and_its_gzip_count_as_the_same(root: Path, zipped: bool) -> None:
    """The digest is of the decompressed bytes."""
    content = packed() if zipped else TEXT
    path = put(root, content, "phoneme.data.gz" if zipped else "phoneme.data")
    assert located(root) == raw_files.RawFile(path, sha256(TEXT), "invented")


def test_the_project_comes_before_the_mirror(root, tmp_path, monkeypatch):
    """The mirror is read in place, and only if data/raw has no copy."""
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / "phoneme.data.gz").write_bytes(packed())
    monkeypatch.setenv(raw_files.MIRROR, str(mirror))
    assert located(root).path == mirror / "phoneme.data.gz"
    assert kept(root) == []
    own = put(root, TEXT)
    assert located(root).path == own


def test_a_mirror_that_is_no_folder_is_named(root, monkeypatch):
    """A misspelt mirror must not lead to a silent download."""
    monkeypatch.setenv(raw_files.MIRROR, str(root / "nowhere"))
    with pytest.raises(UserError, match=r"nowhere.*not a folder"):
        raw_files.locate(root, "phonemes")


def test_without_a_copy_and_without_download_there_is_none(root: Path) -> None:
    """A plan asks what is there and must not reach for the network."""
    assert raw_files.locate(root, "phonemes", download=False) is None


def test_another_edition_with_the_same_content_can_be_accepted(root: Path) -> None:
    """CR LF line ends change the digest, not the data: the user decides, once."""
    content = TEXT.replace("\n", "\r\n").encode()
    path = put(root, content)
    digest = sha256(content)
    with pytest.raises(UserError, match=f"--accept-sha256 {digest}") as refusal:
        located(root)
    assert sha256(TEXT) in str(refusal.value)  # both digests are named
    with pytest.raises(UserError, match=f"is {digest}"):
        raw_files.accept_edition(root, "phonemes", "0" * 64)
    assert raw_files.accept_edition(root, "phonemes", digest).sha256 == digest
    assert "accepted by the user" in located(root).origin
    raw_files.accept_edition(root, "phonemes", digest)  # again: nothing new
    other = put(root, TEXT + "\n").read_bytes()
    raw_files.accept_edition(root, "phonemes", sha256(other))
    assert len((root / "data" / "accepted.toml").read_text().splitlines()) == 4
    put(root, content)
    np.testing.assert_array_equal(
        phonemes.load_curves(path).curves,
        phonemes.load_curves(put(root, TEXT, "lf")).curves,
    )


def test_a_changed_file_is_read_again(root: Path) -> None:
    """The remembered digest belongs to one size and time of a file."""
    path = put(root, TEXT)
    before = raw_files.digest(path)
    put(root, TEXT + " ")
    assert raw_files.digest(path) != before


@pytest.fixture
def publisher() -> Iterator[Callable[[bytes, int], str]]:
    """A web server on the loopback that serves given bytes under a claimed length."""
    served: dict[str, tuple[bytes, int]] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body, claimed = served[self.path]
            self.send_response(200)
            self.send_header("Content-Length", str(claimed))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Keep the test's output quiet."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()

        def serve(body: bytes, claimed: int) -> str:
            served["/phoneme.data"] = (body, claimed)
            return f"http://127.0.0.1:{server.server_address[1]}/phoneme.data"

        yield serve
        server.shutdown()
        thread.join()


def test_a_download_is_checked_and_kept(root, publisher):
    """The second time nothing is downloaded."""
    url = publisher(TEXT.encode(), len(TEXT))
    write_sources(root, TEXT, url=url)
    found = located(root)
    assert found.path == root / "data" / "raw" / "phoneme.data"
    assert found.path.read_text() == TEXT
    assert kept(root) == ["phoneme.data"]
    publisher(b"", 0)
    assert located(root) == found


@pytest.mark.parametrize(
    ("body", "claimed", "message"),
    [
        (TEXT.encode()[:5000], len(TEXT), "could not be downloaded"),
        (TEXT.encode()[:5000], 5000, "content disagrees"),
        (extra_row().encode(), len(extra_row()), "21 rows instead of 20"),
        (packed()[:-500], len(packed()[:-500]), "truncated"),
    ],
)
def test_a_bad_download_leaves_nothing_behind(root, publisher, body, claimed, message):
    """A broken connection, a torn or a wrong file: one message, an empty folder."""
    write_sources(root, TEXT, url=publisher(body, claimed))
    with pytest.raises(UserError, match=message):
        raw_files.locate(root, "phonemes")
    assert kept(root) == []


def test_offline_the_message_says_what_to_do(root: Path) -> None:
    """It names the address, the folder and the mirror variable."""
    with pytest.raises(UserError) as error:
        raw_files.locate(root, "phonemes")
    for part in ("http://127.0.0.1:9/x", "data/raw", "CURVOTE_DATA_MIRROR", ".gz"):
        assert part in str(error.value)
    assert kept(root) == []
