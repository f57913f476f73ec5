"""Two services of one database, one of them killed: every envelope counts once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from curvote.intake.box import Intake
from curvote.intake.store import URL_VARIABLE
from tests import postgres
from tests.envelope_service import answered, invite, project, serving

N = 300
NOWHERE = Path("/nonexistent/intake.sqlite")
WHY = postgres.missing()


@pytest.mark.faults
@pytest.mark.skipif(WHY is not None, reason=str(WHY))
def test_no_kill_between_two_services_loses_or_doubles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All to both, one killed in the middle, then all again: exact counts."""
    place = project(tmp_path / "p")
    with postgres.postgres() as url:
        monkeypatch.setenv(URL_VARIABLE, url)
        sent = answered(invite(NOWHERE, N))
        told: set[int] = set()
        with serving(place) as stays:
            for turn in range(3):
                with serving(place) as dies, ThreadPoolExecutor(8) as pool:
                    end = pool.submit(dies.kill, 0.2 * (turn + 1))
                    mine = range(turn * 100, N)
                    found = pool.map(
                        lambda k: {s.tried(sent[k]) for s in (dies, stays)}, mine
                    )
                    told |= {
                        k for k, seen in zip(mine, found, strict=True) if 201 in seen
                    }
                    end.result()
                with Intake(NOWHERE) as intake:
                    assert intake.round("one-1").accepted >= len(told)
            again = [stays.send(data).status for data in sent]
        assert set(again) <= {200, 201}
        assert all(again[k] == 200 for k in told)
        with Intake(NOWHERE) as intake:
            assert intake.round("one-1").accepted == N
