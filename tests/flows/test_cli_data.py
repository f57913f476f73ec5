"""`curvote data`: which raw files there are, and whether they are sound."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from curvote.base.errors import UserError
from curvote.cli.commands.data import app
from curvote.data import raw_files, registry
from curvote.data.public import phonemes
from tests.phoneme_file import TEXT, bad_crc, extra_row, put, sha256

OTHER = TEXT.replace("\n", "\r\n")


def curvote_data(root: Path, *words: str) -> Result:
    """Run `curvote data` on the project at ``root``."""
    return CliRunner().invoke(app, [*words, "--project", str(root)])


def refused(root: Path, *words: str) -> str:
    """Return what the command says when it ends with a user error."""
    error = curvote_data(root, *words).exception
    assert isinstance(error, UserError), error
    return str(error)


def describe(root: Path, old: str, new: str) -> None:
    """Change what the project's sources.toml says."""
    path = root / "data" / "sources.toml"
    path.write_text(path.read_text().replace(old, new))


def test_a_file_of_the_user_is_checked_and_taken_over(
    root: Path, tmp_path: Path
) -> None:
    """Only a known edition; another one if it is accepted in the same breath."""
    given = tmp_path / "mine.data"
    given.write_text(TEXT)
    words = ["fetch", "phonemes", "--file", str(given), "--project", str(root)]
    assert CliRunner().invoke(app, words).exit_code == 0
    place = root / "data" / "raw" / "phoneme.data"
    assert place.read_text() == TEXT
    given.write_bytes(TEXT.replace("\n", "\r\n").encode())
    refused = CliRunner().invoke(app, words).exception
    assert "--accept-sha256" in str(refused)
    digest = sha256(given.read_bytes())
    done = CliRunner().invoke(app, [*words, "--accept-sha256", digest])
    assert done.exit_code == 0, done.exception
    assert place.read_bytes() == given.read_bytes()
    assert sorted(path.name for path in place.parent.iterdir()) == ["phoneme.data"]


def test_verify_prints_one_json_document(root: Path) -> None:
    """Statuses are ok, absent, changed and damaged; only the last two fail."""
    states: list[tuple[bytes | str | None, str, int]] = [
        (None, "absent", 0),
        (TEXT, "ok", 0),
        (extra_row(), "changed", 1),
        (bad_crc(), "damaged", 1),
    ]
    for content, status, code in states:
        if content is not None:
            put(root, content)
        result = curvote_data(root, "verify", "--json")
        (row,) = json.loads(result.stdout)
        assert set(row) == {"source", "file", "status", "sha256", "message"}
        assert (row["status"], result.exit_code) == (status, code)
        assert (row["sha256"] is None) == (status in {"absent", "damaged"})


def test_verify_never_downloads(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An absent file stays absent."""
    monkeypatch.setattr(raw_files, "download_file", pytest.fail)
    assert curvote_data(root, "verify").exit_code == 0


def test_list_and_fetch_say_what_is_there(root: Path) -> None:
    """A simulated set needs no file; an unknown name gets a suggestion."""
    path = put(root, TEXT)
    listed = curvote_data(root, "list").stdout
    assert str(path) in listed
    assert all(name in listed for name in registry.DATASETS)
    fetched = curvote_data(root, "fetch", "phonemes").stdout
    assert str(path) in fetched
    assert raw_files.digest(path) in fetched
    nothing = curvote_data(root, "fetch", "simulated")
    assert "nothing to fetch" in nothing.stdout
    wrong = curvote_data(root, "fetch", "phoneme")
    assert isinstance(wrong.exception, UserError)


def test_list_names_each_file_its_state_and_its_licence(root: Path) -> None:
    """A file that is absent is named by what it would be called."""
    assert "absent  20 rows, Fake" in curvote_data(root, "list").stdout
    put(root, TEXT)
    listed = curvote_data(root, "list").stdout
    assert "here    20 rows, Fake phonemes" in listed
    assert "licence: none" in listed
    assert "simulated: no published file" in listed


def test_another_edition_is_accepted_by_its_digest(root: Path) -> None:
    """It is refused with the way out; then it stays accepted, that edition alone."""
    put(root, OTHER)
    said = refused(root, "fetch", "phonemes")
    digest = sha256(OTHER)
    assert f"curvote data fetch phonemes --accept-sha256 {digest}" in said
    wrong = refused(root, "fetch", "phonemes", "--accept-sha256", sha256(TEXT))
    assert digest in wrong
    assert curvote_data(root, "verify").exit_code == 1
    done = curvote_data(root, "fetch", "phonemes", "--accept-sha256", digest)
    assert "accepted by the user" in done.stdout
    assert curvote_data(root, "verify").exit_code == 0
    put(root, OTHER + "\r\n")
    assert curvote_data(root, "verify").exit_code == 1


def test_a_digest_does_not_accept_other_content(root: Path) -> None:
    """One row too many stays refused, whatever the user says."""
    put(root, extra_row())
    digest = sha256(extra_row())
    said = refused(root, "fetch", "phonemes", "--accept-sha256", digest)
    assert "21 rows instead of 20" in said


@pytest.mark.parametrize(
    ("key", "message"),
    [("login", "log in at http://127.0.0.1:9/x"), ("derived", "no publisher")],
)
def test_what_cannot_be_fetched_says_so(
    root: Path, monkeypatch: pytest.MonkeyPatch, key: str, message: str
) -> None:
    """No download is tried; the message names the folder; a copy there is found."""
    monkeypatch.setattr(raw_files, "_download_to", pytest.fail)
    describe(root, "rows = 20", f"rows = 20\n{key} = true")
    said = refused(root, "fetch", "phonemes")
    assert message in said
    assert str(root / "data" / "raw") in said
    put(root, TEXT)
    assert "invented" in curvote_data(root, "fetch", "phonemes").stdout


@pytest.fixture
def two_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project whose phonemes need a second file that has no publisher."""
    path = root / "data" / "sources.toml"
    second = path.read_text().replace("phonemes", "second")
    second = second.replace("phoneme.data", "second.data")
    second = second.replace("rows =", 'dataset = "phonemes"\nderived = true\nrows =')
    path.write_text(path.read_text() + second)
    monkeypatch.setattr(phonemes, "files", lambda _: ("phonemes", "second"))
    return root


def test_a_data_set_of_several_files_is_fetched_as_one(two_files: Path) -> None:
    """What is here is shown, what is not is said; a digest belongs to one file."""
    put(two_files, TEXT)
    result = curvote_data(two_files, "fetch", "phonemes")
    assert "phoneme.data\nSHA-256" in result.stdout
    assert "second.data has no publisher" in str(result.exception)
    said = refused(two_files, "fetch", "phonemes", "--accept-sha256", "ab")
    assert "phonemes, second" in said
    put(two_files, TEXT, "second.data")
    result = curvote_data(two_files, "fetch", "second")
    assert result.stdout.count("SHA-256") == 1
    assert curvote_data(two_files, "fetch", "phonemes").exit_code == 0


def test_show_prints_the_card_and_draws_it(root: Path) -> None:
    """As a table, plain where there is no terminal, or as one JSON document."""
    put(root, TEXT)
    shown = curvote_data(root, "show", "phonemes").stdout
    assert "\x1b" not in shown
    for part in ("iy 4 (50.0 %)", "invented", sha256(TEXT), "licence"):
        assert part in shown
    document = json.loads(curvote_data(root, "show", "phonemes", "--json").stdout)
    assert document["counts"] == {"iy": 4, "sh": 4}
    assert document["files"][0]["sha256"] == sha256(TEXT)
    folder = root / "data" / "reports" / "data"
    assert document["figures"] == [f"{folder}/phonemes.{k}" for k in ("png", "svg")]
    assert all(Path(path).is_file() for path in document["figures"])


@pytest.mark.parametrize("name", ["simulated", "remote"])
def test_show_refuses_what_is_not_published(root: Path, name: str) -> None:
    """There is no card of records that belong to clients."""
    assert "no published file" in refused(root, "show", name)


def test_show_downloads_nothing(two_files: Path) -> None:
    """It names every file that is absent."""
    assert "not here: phonemes, second." in refused(two_files, "show", "phonemes")
    assert "Did you mean 'phonemes'" in refused(two_files, "show", "phoneme")
