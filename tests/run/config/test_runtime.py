"""The section `runtime`: how a project runs, checked like every other setting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from curvote.base.errors import UserError
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.schema import LEAST_SECONDS, Runtime, parse_span
from curvote.pipeline.config.yaml_document import as_yaml
from tests import plain


def file(root: Path, stated: Any) -> PipelinesFile:
    """Return a file of one pipeline with this section."""
    whole = {"pipelines": {"tiny": plain.TINY}, "runtime": stated}
    (root / "pipelines.yaml").write_text(as_yaml(whole))
    return PipelinesFile(Project(root))


def test_a_file_without_the_section_runs_here(tmp_path: Path) -> None:
    """On the processors of this machine, and nothing is ever thrown away."""
    assert file(tmp_path, None).runtime() == Runtime()
    assert Runtime().retention.runs is None


@pytest.mark.parametrize(("span", "hours"), [("1h", 1), ("36 h", 36), ("2w", 336)])
def test_spans_are_hours_days_or_weeks(span: str, hours: int) -> None:
    """An hour is the least."""
    assert parse_span(span) == hours * LEAST_SECONDS


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({"engine": "ray"}, "runtime.engine: .*'local', 'threads' or 'dask'"),
        ({"cluster": "tcp://here:1"}, "only engine dask has a cluster"),
        ({"artifacts": "/mnt/there"}, "runtime.artifacts"),
        ({"retention": {"runs": "0h"}}, "under an hour would take"),
        ({"retention": {"runs": "90"}}, "write a span of time as 36h, 90d or 12w"),
        ({"retention": {"run": "90d"}}, "not known. Did you mean 'runs'"),
        ({"notify": {"on": ["always"]}}, "'missed' or 'recovered'"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    tmp_path: Path, stated: dict[str, Any], words: str
) -> None:
    """With the line it stands in; a check of the file finds it, too."""
    bad = file(tmp_path, stated)
    for check in (bad.runtime, bad.check_all):
        with pytest.raises(UserError, match=words) as found:
            check()
        assert str(found.value).startswith("pipelines.yaml:")
