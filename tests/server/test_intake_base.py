"""Where an intake is: what cannot be one is refused, and no password is said."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from curvote.base.errors import UserError
from curvote.intake.box import Intake
from curvote.intake.store import URL_VARIABLE

NOWHERE = Path("/nonexistent/intake.sqlite")


def test_an_address_that_names_nothing_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is wrong with it, its password is not said."""
    for url in ("nonsense secret-word", "postgresql://a:secret-word@127.0.0.1:1/x"):
        monkeypatch.setenv(URL_VARIABLE, url)
        with pytest.raises(UserError) as caught:
            Intake(NOWHERE)
        assert "secret-word" not in str(caught.value)


def test_without_the_library_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In an interpreter that has none."""
    monkeypatch.setenv(URL_VARIABLE, "postgresql://a@127.0.0.1:1/x")
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from pathlib import Path\n"
        "from curvote.base.errors import UserError\n"
        "from curvote.intake.box import Intake\n"
        "try: Intake(Path('x'))\n"
        "except UserError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "curvote[postgres]" in done.stdout
