"""A server that has asked, and a registry that was invited."""

import os
from pathlib import Path

import pandas as pd
import pytest

from tests.exchange import Server
from tests.registry import ALONE, Keeper, N, invitations, people, server

# Networks of a test take few steps: what JAX compiles need not be fast.
os.environ["XLA_FLAGS"] = " ".join(
    ("--xla_backend_optimization_level=0", "--xla_llvm_disable_expensive_passes=true")
)


@pytest.fixture
def table() -> pd.DataFrame:
    """Return what everybody knows of N people, and their labels."""
    return people(N)


@pytest.fixture
def steward(tmp_path: Path, table: pd.DataFrame) -> Server:
    """Return a server that has published its task and N invitations."""
    made = server(tmp_path / "server", table)
    made.run()
    return made


@pytest.fixture
def registry(tmp_path: Path, steward: Server) -> Keeper:
    """Return a registry with the invitations of all but the first few people."""
    made = Keeper.at(tmp_path / "registry", steward)
    for name, each in [*invitations(steward).items()][ALONE:]:
        made.invited(each, f"invitations/{each.file_name}")
        assert each.record == name
    return made
