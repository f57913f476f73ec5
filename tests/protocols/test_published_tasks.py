"""A server publishes no task that its clients would refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from curvote.base.errors import UserError
from curvote.intake.box import Intake
from tests import plain
from tests.exchange import FAR, NAME, Server

SOURCE = {"name": "remote", "points": 20, "negative": "-1", "positive": "+1"}
PROJECT = {"basis": "bspline", "size": 4, "judge": "coefficients"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"source": SOURCE | {"positive": "yes, certainly"}}, "word or phrase"),
        ({"source": SOURCE | {"positive": "-1 "}}, "plain text"),
        ({"source": SOURCE | {"negative": "A", "positive": "a"}}, "different words"),
        ({"source": SOURCE | {"domain": [0.0, 1e16]}}, "at most 1e\\+15"),
        ({"project": PROJECT | {"scale": 1e-9}}, "at least 1e-06"),
        ({"epsilon": 2000}, "at most 1000"),
    ],
)
def test_what_clients_would_refuse_is_not_published(
    change: dict[str, Any], words: str, tmp_path: Path
) -> None:
    """In the same words, before a file is written or a round opened."""
    server = Server(plain.write(tmp_path / "server", **{NAME: FAR | change}))
    with pytest.raises(UserError, match=words):
        server.run()
    assert not list(server.project.published(NAME).glob("*"))
    if server.project.intake.exists():
        with Intake(server.project.intake) as intake:
            assert intake.rounds(NAME) == []
