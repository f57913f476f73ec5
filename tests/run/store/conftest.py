"""An object store for the tests of the store."""

from collections.abc import Iterator

import pytest
from pyarrow import fs

from tests.object_store import bucket, point_at, started


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Return the address of an object store, for all tests of a file."""
    with started() as found:
        yield found


@pytest.fixture
def store(address: str, monkeypatch: pytest.MonkeyPatch) -> fs.S3FileSystem:
    """Return what is in the store, which the environment names; it is empty."""
    point_at(monkeypatch, address)
    return bucket(address)
