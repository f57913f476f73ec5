"""Two copies of a project, one witness: what one released counts for the other."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from curvote.base.errors import UserError
from curvote.ledger.book import Ledger, back_up_ledger
from curvote.pipeline.config.project import Project
from curvote.pipeline.release import evidence, restore
from curvote.pipeline.release import production as session
from tests import plain, production
from tests.witnessed import refused, run, witnessed


def test_two_copies_that_release_at_once_draw_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other begins when this one has been asked: it is stopped before it draws.

    It took its reservation back, and the other released: to a restored ledger that
    counts.
    """
    project = plain.write(tmp_path / "house", **witnessed(tmp_path / "witness.jsonl"))
    run(project, "one")
    back_up_ledger(project.ledger, tmp_path / "backup.sqlite")
    other = Project(shutil.copytree(project.root, tmp_path / "other"))
    reserve = session._reserve_release

    def late(*given: Any) -> None:
        if project in given:
            run(other, "two")
        reserve(*given)

    with monkeypatch.context() as patch:
        patch.setattr(session, "_reserve_release", late)
        with pytest.raises(UserError, match="Another copy of it is in use"):
            run(project, "two")
    assert [e.state for e in production.ledger_entries(project)][2:] == ["cancelled"]
    assert len(list(project.artifacts.glob("privatize/*"))) == 1
    assert refused(project, "one", "two")
    for file in (project.ledger, tmp_path / "backup.sqlite"):
        restore.restore_ledger(project, file)
        assert spent(project) == spent(other)
        assert evidence.ledger_problems(project) == []


def spent(project: Project) -> dict[str, float]:
    """Return what each client has spent."""
    with Ledger(project.ledger) as ledger:
        found = ledger.spent("simulated")
    return dict(zip(found.clients.tolist(), found.epsilon.tolist(), strict=True))
