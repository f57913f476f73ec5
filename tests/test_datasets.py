"""The promises of the data sets: what is read, what is refused, what is stored."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from curvote.datasets import phonemes, raw, registry, simulated, sources
from curvote.datasets.unpack import DamagedError, read
from curvote.errors import UserError
from flows.cli_data import app
from tests import phoneme_file

RUN = CliRunner()
TEXT = phoneme_file.text()
MIRROR = os.environ.get(raw.MIRROR)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No mirror, no proxy and no second attempt, unless a test says so."""
    monkeypatch.delenv(raw.MIRROR, raising=False)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(raw, "RETRIES", 0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project that knows one edition of a small fake phoneme file."""
    phoneme_file.write_sources(tmp_path, TEXT)
    (tmp_path / "pipelines.yaml").touch()
    (tmp_path / "data" / "raw").mkdir()
    return tmp_path


def put(root: Path, content: bytes | str, name: str = "phoneme.data") -> Path:
    """Write a file into data/raw of the project."""
    path = root / "data" / "raw" / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def kept(root: Path) -> list[str]:
    """Return what lies in data/raw, hidden leftovers too."""
    return sorted(path.name for path in (root / "data" / "raw").iterdir())


# ------------------------------------------------------------------- finding files


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_and_its_gzip_count_as_the_same(root: Path, packed: bool) -> None:
    """The digest is of the decompressed bytes."""
    content = gzip.compress(TEXT.encode()) if packed else TEXT.encode()
    path = put(root, content, "phoneme.data.gz" if packed else "phoneme.data")
    found = raw.locate(root, "phonemes")
    sha256 = hashlib.sha256(TEXT.encode()).hexdigest()
    assert found == raw.RawFile(path, sha256, "invented")


def test_the_project_comes_before_the_mirror(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mirror is read in place, and only if data/raw has no copy."""
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / "phoneme.data.gz").write_bytes(gzip.compress(TEXT.encode()))
    monkeypatch.setenv(raw.MIRROR, str(mirror))
    found = raw.locate(root, "phonemes")
    assert found
    assert found.path == mirror / "phoneme.data.gz"
    assert kept(root) == []
    own = put(root, TEXT)
    found = raw.locate(root, "phonemes")
    assert found
    assert found.path == own


def test_a_mirror_that_is_no_folder_is_named(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misspelt mirror must not lead to a silent download."""
    monkeypatch.setenv(raw.MIRROR, str(root / "nowhere"))
    with pytest.raises(UserError, match=r"nowhere.*not a folder"):
        raw.locate(root, "phonemes")


def test_without_a_copy_and_without_download_there_is_none(root: Path) -> None:
    """A plan asks what is there and must not reach for the network."""
    assert raw.locate(root, "phonemes", download=False) is None


def test_another_edition_with_the_same_content_is_accepted(root: Path) -> None:
    """CR LF line ends change the digest, not the data; the digest is handed back."""
    content = TEXT.replace("\n", "\r\n").encode()
    path = put(root, content)
    found = raw.locate(root, "phonemes")
    assert found
    assert found.origin == "unlisted, schema and counts agree"
    assert found.sha256 == hashlib.sha256(content).hexdigest()
    np.testing.assert_array_equal(
        phonemes.load(path).curves, phonemes.load(put(root, TEXT, "lf")).curves
    )


def test_a_changed_file_is_read_again(root: Path) -> None:
    """The remembered digest belongs to one size and time of a file."""
    path = put(root, TEXT)
    before = raw.digest(path)
    put(root, TEXT + " ")
    assert raw.digest(path) != before


# ------------------------------------------------------------------- damaged files


def _packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def _bad_crc() -> bytes:
    content = bytearray(_packed(TEXT.encode()))
    content[-8] ^= 1
    return bytes(content)


DAMAGED: dict[str, tuple[bytes, str]] = {
    "truncated gzip": (_packed(TEXT.encode())[:-500], "truncated"),
    "bad CRC": (_bad_crc(), "CRC check failed"),
    "no gzip inside": (b"\x1f\x8b" + b"junk" * 9, "damaged"),
    "empty": (b"", "is empty"),
    "empty gzip": (_packed(b""), "is empty"),
}


def _without_column() -> str:
    return "\n".join(line.partition(",")[2] for line in TEXT.split("\n"))


def _extra_row() -> str:
    return TEXT + TEXT.split("\n")[-2] + "\n"


def _cut(n: int) -> str:
    return TEXT[:n]


CHANGED: dict[str, tuple[str, str]] = {
    "missing column": (_without_column(), "column row.names is missing"),
    "wrong class": (
        phoneme_file.replace_cell(TEXT, 4, 257, "zz"),
        "line 4, column g is 'zz', not one of aa, ao",
    ),
    "no value": (
        phoneme_file.replace_cell(TEXT, 7, 12, ""),
        "line 7, column x.12 has no value",
    ),
    "NaN": (
        phoneme_file.replace_cell(TEXT, 7, 12, "NaN"),
        "line 7, column x.12 has no value",
    ),
    "infinite": (
        phoneme_file.replace_cell(TEXT, 2, 1, "inf"),
        "line 2, column x.1 is inf, not a finite",
    ),
    "text": (
        phoneme_file.replace_cell(TEXT, 3, 5, "1.2.3"),
        "line 3, column x.5 is '1.2.3', not a finite",
    ),
    "no speaker": (
        phoneme_file.replace_cell(TEXT, 3, 258, ""),
        "line 3, column speaker has no value",
    ),
    "extra row": (_extra_row(), "21 rows instead of 20, sh 5 instead of 4"),
    "extra field": (TEXT.replace(".sa1", ".sa1,1"), "more fields than its header"),
    "one extra field": (TEXT.replace(".s3.sa1", ",x", 1), "saw 260"),
    "other label": (
        phoneme_file.replace_cell(TEXT, 2, 257, "sh"),
        "wrong counts: aa 3 instead of 4, sh 5 instead of 4",
    ),
    "cut in a row": (_cut(len(TEXT) // 2), "has no value"),
    "cut between rows": (_cut(TEXT.rindex("\n20,") + 1), "19 rows instead of 20"),
    "a web page": ("<html>Not found</html>\n", "column row.names is missing"),
    "no text": ("\x00\udcff".encode("utf-8", "surrogatepass").hex() + "\xff", "schema"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_unreadable_bytes_are_refused(root: Path, case: str) -> None:
    """Each kind of damage has its message, at finding and at loading."""
    content, message = DAMAGED[case]
    path = put(root, content, "phoneme.data.gz")
    for attempt in (
        lambda: raw.locate(root, "phonemes"),
        lambda: phonemes.load(path),
    ):
        with pytest.raises(DamagedError, match=message):
            attempt()


@pytest.mark.parametrize("case", CHANGED)
def test_changed_content_is_refused(root: Path, case: str) -> None:
    """The message names the place, what was found, and both digests."""
    content, message = CHANGED[case]
    put(root, content)
    with pytest.raises(UserError) as error:
        raw.locate(root, "phonemes")
    assert message in str(error.value)
    assert hashlib.sha256(content.encode()).hexdigest() in str(error.value)
    assert hashlib.sha256(TEXT.encode()).hexdigest() in str(error.value)


def test_many_faults_are_listed_briefly(root: Path) -> None:
    """Five faults are shown, the others counted."""
    path = put(root, TEXT.replace(",iy,", ",IY,").replace(",aa,", ",AA,"))
    with pytest.raises(UserError, match=r"not one of.*; and 3 more"):
        phonemes.load(path)


# ----------------------------------------------------------------------- downloads


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


def test_a_download_is_checked_and_kept(
    root: Path, publisher: Callable[[bytes, int], str]
) -> None:
    """The second time nothing is downloaded."""
    url = publisher(TEXT.encode(), len(TEXT))
    phoneme_file.write_sources(root, TEXT, url=url)
    found = raw.locate(root, "phonemes")
    assert found
    assert found.path == root / "data" / "raw" / "phoneme.data"
    assert found.path.read_text() == TEXT
    assert kept(root) == ["phoneme.data"]
    publisher(b"", 0)
    assert raw.locate(root, "phonemes") == found


@pytest.mark.parametrize(
    ("body", "claimed", "message"),
    [
        (TEXT.encode()[:5000], len(TEXT), "could not be downloaded"),
        (TEXT.encode()[:5000], 5000, "content disagrees"),
        (_extra_row().encode(), len(_extra_row()), "21 rows instead of 20"),
        (DAMAGED["truncated gzip"][0], len(DAMAGED["truncated gzip"][0]), "truncated"),
    ],
)
def test_a_bad_download_leaves_nothing_behind(
    root: Path,
    publisher: Callable[[bytes, int], str],
    body: bytes,
    claimed: int,
    message: str,
) -> None:
    """A broken connection, a torn or a wrong file: one message, an empty folder."""
    phoneme_file.write_sources(root, TEXT, url=publisher(body, claimed))
    with pytest.raises(UserError, match=message):
        raw.locate(root, "phonemes")
    assert kept(root) == []


def test_offline_the_message_says_what_to_do(root: Path) -> None:
    """It names the address, the folder and the mirror variable."""
    with pytest.raises(UserError) as error:
        raw.locate(root, "phonemes")
    for part in ("http://127.0.0.1:9/x", "data/raw", "CURVOTE_DATA_MIRROR", ".gz"):
        assert part in str(error.value)
    assert kept(root) == []


# -------------------------------------------------------------------- sources.toml


def test_every_source_is_a_data_set_and_listed() -> None:
    """Names agree with the registry; rows are the sum of the classes."""
    for name, source in sources.catalogue().items():
        assert name in registry.DATASETS
        assert source.rows == sum(source.counts.values())
        assert all(len(variant.sha256) == 64 for variant in source.variants)


def test_the_registry_names_what_a_data_set_offers() -> None:
    """Each module states its parameters, whether it is simulated, facts and clients."""
    for name in registry.DATASETS:
        module = registry.module(name)
        assert module.Parameters(name=name).name == name
        assert isinstance(module.SIMULATED, bool)
        assert callable(module.facts)
        assert callable(module.clients)
    with pytest.raises(UserError, match="Did you mean 'phonemes'"):
        registry.module("phoneme")


@pytest.mark.parametrize(
    ("content", "message"),
    [("[phonemes", "sources.toml"), ("[phonemes]\nrow = 1", "variants")],
)
def test_a_wrong_sources_file_is_named(root: Path, content: str, message: str) -> None:
    """Its syntax and its keys are the user's to mend."""
    (root / "data" / "sources.toml").write_text(content)
    with pytest.raises(UserError, match=message):
        raw.locate(root, "phonemes")


# ------------------------------------------------------------------------ phonemes


def test_phonemes_become_a_table_of_clients(root: Path) -> None:
    """Rows in the file's order; 1 is the positive class; speakers by appearance."""
    table = phonemes.load(put(root, TEXT))
    assert table.curves.shape == (8, 256)
    assert table.labels.tolist() == [0, 1] * 4
    assert table.groups.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert table.classes == ("iy", "sh")
    assert len(table.grid) == 256
    assert (table.grid[0], table.grid[-1]) == table.domain
    first = TEXT.split("\n")[4].split(",")
    assert table.curves[0].tolist() == [float(value) for value in first[1:257]]
    assert "4 speakers have up to 2 of these curves" in table.notes[0]


def test_facts_and_clients_tell_the_same(root: Path) -> None:
    """Facts are JSON; the columns have one row a client and no raw speaker name."""
    path = put(root, TEXT)
    chosen = phonemes.Parameters(positive="aa", negative="dcl", groups="speaker")
    facts = json.loads(json.dumps(phonemes.facts(chosen, path)))
    columns = phonemes.clients(chosen, path)
    assert facts["rows"] == len(columns["curve"]) == 8
    assert facts["counts"] == {"dcl": 4, "aa": 4}
    assert facts["simulated"] is False
    assert columns["client_id"].tolist() == list(range(8))
    assert set(columns) == {"client_id", "label", "group", "curve"}


@pytest.mark.parametrize(
    ("positive", "negative", "message"),
    [
        ("shh", "iy", "positive is 'shh'. Did you mean 'sh'"),
        ("sh", "xx", "negative is 'xx'. Known: aa, ao"),
        ("iy", "iy", "both 'iy'"),
    ],
)
def test_an_unknown_phoneme_is_refused(
    root: Path, positive: str, negative: str, message: str
) -> None:
    """The message suggests what may have been meant."""
    with pytest.raises(UserError, match=message):
        phonemes.load(put(root, TEXT), positive, negative)


@pytest.mark.parametrize(
    "source", [{"positive": "shh"}, {"negative": "sh"}, {"positive": "iy"}, {"n": 1}]
)
def test_a_configuration_with_wrong_phonemes_is_refused(source: dict[str, str]) -> None:
    """Unknown or equal classes and unknown keys never reach a run."""
    with pytest.raises(ValidationError) as error:
        phonemes.Parameters.model_validate({"name": "phonemes"} | source)
    assert error.value.errors()[0]["loc"][0] in {"positive", "negative", "n"}


def test_the_number_of_clients_is_known_without_a_file() -> None:
    """A plan can refuse more clients than there are before it loads anything."""
    assert phonemes.size(phonemes.Parameters()) == 872 + 1163
    assert phonemes.size(phonemes.Parameters(positive="aa", negative="ao")) == 1717
    assert simulated.size(simulated.Parameters()) is None


@pytest.mark.skipif(not MIRROR, reason="needs the real file: CURVOTE_DATA_MIRROR unset")
def test_the_real_phonemes_are_as_published(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are 872 curves of sh and 1163 of iy; 437 speakers have up to 6."""
    monkeypatch.setenv(raw.MIRROR, str(MIRROR))
    (root / "data" / "sources.toml").unlink()
    found = raw.locate(root, "phonemes")
    assert found
    assert found.origin != raw.UNLISTED
    published = sources.find("phonemes")
    phonemes.check(read(found.path), rows=published.rows, counts=published.counts)
    table = phonemes.load(found.path)
    assert np.bincount(table.labels).tolist() == [1163, 872]
    assert np.bincount(table.groups).shape == (437,)
    assert np.bincount(table.groups).max() == 6
    values = phonemes.parse(read(found.path)).filter(like="x.").to_numpy()
    assert (values.min(), values.max()) == (-8.17219, 26.91038)


# ----------------------------------------------------------------------- simulated


def test_simulated_curves_follow_the_formula() -> None:
    """Curves lie in the span of phi_1..phi_50; coefficients are at most sqrt(3)/j."""
    curves, labels = simulated.generate(np.random.default_rng(1), 40, 2001)
    grid = np.linspace(0, 1, 2001)
    for j in (1, 2, 7, 50):
        phi = np.sqrt(2) * np.cos((j - 1) * np.pi * grid) if j > 1 else np.ones(2001)
        coefficients = np.trapezoid(curves * phi, grid, axis=1)
        limit = np.sqrt(3) / j
        assert 0.7 * limit < np.abs(coefficients).max() < limit * (1 + 1e-3)
    assert curves.shape == (40, 2001)
    assert set(labels.tolist()) == {0, 1}


def test_simulated_labels_have_the_stated_law() -> None:
    """The true logit errs as often as the Bayes error says (5 standard errors)."""
    n = 50_000
    curves, labels = simulated.generate(np.random.default_rng(2), n, 101)
    grid, j = np.linspace(0, 1, 101), np.arange(2, 51)[:, None]
    slopes = 4 * (-1.0) ** (j + 1) / j**2 * np.sqrt(2) * np.cos((j - 1) * np.pi * grid)
    beta = 4 + slopes.sum(axis=0)
    logit = 0.1 + np.trapezoid(curves * beta, grid, axis=1)
    error = np.mean((logit > 0) != labels)
    bayes = simulated.bayes_error()
    assert abs(error - bayes) < 5 * np.sqrt(bayes * (1 - bayes) / n)
    surprise = labels - 1 / (1 + np.exp(-logit))
    assert abs(surprise.mean()) < 5 * surprise.std() / np.sqrt(n)


def test_the_bayes_error_is_the_mean_of_the_smaller_probability() -> None:
    """A large fixed-seed average of min(eta, 1 - eta) agrees within 5 of its errors."""
    xi = np.random.default_rng(3).uniform(-np.sqrt(3), np.sqrt(3), (200_000, 50))
    logit = 0.1 + xi @ (4 / np.arange(1, 51) ** 3.0)
    least = 1 / (1 + np.exp(np.abs(logit)))
    away = abs(simulated.bayes_error() - least.mean())
    assert away < 5 * least.std() / np.sqrt(len(least))
    assert 0.0993 < simulated.bayes_error() < 0.1005


def test_one_seed_gives_one_data_set() -> None:
    """Same generator, same clients; another seed, other clients."""
    chosen = simulated.Parameters(points=7)
    first, again, other = (
        simulated.clients(chosen, 5, np.random.default_rng(seed)) for seed in (4, 4, 5)
    )
    for name, column in first.items():
        np.testing.assert_array_equal(column, again[name])
    assert not np.array_equal(first["curve"], other["curve"])
    assert first["curve"].shape == (5, len(simulated.facts(chosen)["grid"]))
    assert json.dumps(simulated.facts(chosen))


# ------------------------------------------------------------------- command line


def test_verify_prints_one_json_document(root: Path) -> None:
    """Statuses are ok, absent, changed and damaged; only the last two fail."""
    states: list[tuple[bytes | None, str, int]] = [
        (None, "absent", 0),
        (TEXT.encode(), "ok", 0),
        (_extra_row().encode(), "changed", 1),
        (DAMAGED["bad CRC"][0], "damaged", 1),
    ]
    for content, status, code in states:
        if content is not None:
            put(root, content)
        result = RUN.invoke(app, ["verify", "--json", "--project", str(root)])
        (row,) = json.loads(result.stdout)
        assert set(row) == {"source", "file", "status", "sha256", "message"}
        assert (row["status"], result.exit_code) == (status, code)
        assert (row["sha256"] is None) == (status in {"absent", "damaged"})


def test_verify_never_downloads(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An absent file stays absent."""
    monkeypatch.setattr(raw, "fetch", pytest.fail)
    assert RUN.invoke(app, ["verify", "--project", str(root)]).exit_code == 0


def test_list_and_fetch_say_what_is_there(root: Path) -> None:
    """A simulated set needs no file; an unknown name gets a suggestion."""
    path = put(root, TEXT)
    listed = RUN.invoke(app, ["list", "--project", str(root)]).stdout
    assert str(path) in listed
    assert all(name in listed for name in registry.DATASETS)
    fetched = RUN.invoke(app, ["fetch", "phonemes", "--project", str(root)]).stdout
    assert str(path) in fetched
    assert raw.digest(path) in fetched
    nothing = RUN.invoke(app, ["fetch", "simulated", "--project", str(root)])
    assert "nothing to fetch" in nothing.stdout
    wrong = RUN.invoke(app, ["fetch", "phoneme", "--project", str(root)])
    assert isinstance(wrong.exception, UserError)
