"""The key under which digests of private files are told: made once, never replaced."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from curvote.base.errors import UserError
from curvote.data.raw_files import digest
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.source import keyed_digest
from tests import plain, production
from tests.datasets.test_own_data import REAL, STUDY
from tests.datasets.test_own_data import project as people  # noqa: F401  a fixture

DIGEST = "ab" * 32


@pytest.fixture
def empty(tmp_path: Path) -> Project:
    """Return a project that has told nothing yet."""
    return Project(tmp_path)


def test_a_key_is_made_once_for_its_owner_alone(empty: Project) -> None:
    """32 bytes, mode 0600 under any umask; the same digest is told the same way."""
    mask = os.umask(0)
    told = keyed_digest(empty, DIGEST)
    os.umask(mask)
    assert (empty.digest_key.stat().st_mode & 0o777, len(told)) == (0o600, 64)
    assert empty.state.stat().st_mode & 0o777 == 0o700
    assert empty.digest_key.stat().st_size == 32
    assert keyed_digest(empty, DIGEST) == told
    assert keyed_digest(empty, "cd" * 32) != told
    assert [path.name for path in empty.state.iterdir()] == ["digest.key"]


def test_projects_tell_the_same_file_differently(tmp_path: Path) -> None:
    """So nobody else's key helps."""
    told = {keyed_digest(Project(tmp_path / name), DIGEST) for name in "ab"}
    assert len(told) == 2


def test_whoever_comes_second_uses_the_first_key(empty: Project) -> None:
    """Many at once agree on one key."""
    with ThreadPoolExecutor(16) as pool:
        told = set(pool.map(lambda _: keyed_digest(empty, DIGEST), range(64)))
    assert len(told) == 1
    assert [path.name for path in empty.state.iterdir()] == ["digest.key"]


CHANGES: dict[str, Callable[[Path], object]] = {
    "readable": lambda key: key.chmod(0o640),
    "short": lambda key: key.write_bytes(key.read_bytes()[:-1]),
    "empty": lambda key: key.write_bytes(b""),
    "linked": lambda key: key.symlink_to(key.rename(key.with_name("elsewhere"))),
    "dangling": lambda key: (key.unlink(), key.symlink_to("nowhere")),
    "folder": lambda key: (key.unlink(), key.mkdir()),
    "pipe": lambda key: (key.unlink(), os.mkfifo(key, 0o600)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_is_no_key_is_refused_and_left(
    empty: Project, change: Callable[[Path], object]
) -> None:
    """A key that others may have read, or that is cut off, keys nothing."""
    keyed_digest(empty, DIGEST)
    change(empty.digest_key)
    before = os.lstat(empty.digest_key)
    for _ in range(2):
        with pytest.raises(UserError, match=r"digest\.key"):
            keyed_digest(empty, DIGEST)
    assert os.lstat(empty.digest_key) == before


def test_without_its_key_a_study_is_computed_anew_and_a_release_is_not(
    people: Project,  # noqa: F811  the fixture
) -> None:
    """Names of releases hold no keyed digest: what was released is still found."""
    plain.write(people.root, study=STUDY, real=REAL)
    plain.run(people, "study")
    plain.run(people, "real")
    before = production.confirmed(people)
    people.digest_key.unlink()
    assert plain.to_run(plain.plan(people, "real")) == set()
    (step, *_) = plain.plan(people, "study").steps
    assert step.action == "run"
    assert step.reason == "the raw file changed, or data/state/digest.key"
    plain.run(people, "real")
    assert production.confirmed(people) == before


def test_a_published_file_keeps_its_plain_digest_in_a_study(
    people: Project,  # noqa: F811  the fixture
) -> None:
    """A private one's is under the key, in a study as in a release."""
    plain_digest = digest(people.root / "people.csv")
    for name in ("study", "real"):
        (raw,) = plain.plan(people, name).steps[0].raw
        assert (raw.sha256, raw.public_digest) == (
            plain_digest,
            keyed_digest(people, plain_digest),
        )
        assert plain_digest not in repr(raw)
