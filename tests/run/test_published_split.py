"""The publisher's split, from the source to the roles of a study and of a release."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.data.public import phonemes
from curvote.papers.registry import file_of
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.source import MissingFiles, raw_files
from curvote.pipeline.plan.step import find_people
from curvote.pipeline.run import results
from curvote.systems.common.page.curves import replicate_roles
from tests import phoneme_file, plain

SPLIT = {"split": "published", "groups": "speaker"}
STUDY: dict[str, Any] = {
    "protocol": "direct",
    "direct": {"arm": "mean"},
    "source": {"name": "phonemes", **SPLIT},
    "clients": {"public": 20, "train": 60, "test": 14},
    "project": {
        "basis": "fourier",
        "size": 3,
        "coordinates": "orthonormal",
        "rescale": "standard",
        "centre": "volunteers",
        "scale": "volunteers",
    },
    "epsilon": 1,
    "replicates": 2,
    "seed": 3,
}
RELEASE = STUDY | {
    "mode": "production",
    "clients": {"public": 20, "train": 60},
    "ledger": {"per_client": {"epsilon": 1}},
}
del RELEASE["replicates"]


@pytest.fixture
def project(root: Path) -> Project:
    """Return a project of 80 speakers, of whom 11 are the publisher's for tests."""
    content = phoneme_file.text(400).replace("train.dr1.s3", "test.dr1.s3")
    phoneme_file.write_sources(root, content, rows=400)
    phoneme_file.put(root, content)
    short = STUDY["clients"] | {"test": 40}
    more = STUDY | {"clients": short}
    pipelines = {"study": STUDY, "release": RELEASE, "more": more}
    return plain.write(root, **pipelines)


def set_aside(project: Project) -> set[int]:
    """Return the ids of the publisher's test part."""
    parameters = phonemes.Parameters(split="published")
    path = project.root / "data" / "raw" / "phoneme.data"
    table = phonemes.clients(parameters, {"phonemes": path})
    return {*table["client_id"][table["part"] == 1].tolist()}


def test_a_study_tests_on_the_publishers_part_alone(project: Project) -> None:
    """In every replicate; volunteers and those who train are of the other part."""
    own = set_aside(project)
    record = plain.run(project, "study")
    view, *_ = results.final_views(project, record)
    for replicate in range(2):
        rows, roles = replicate_roles(view, replicate)
        ids = {role: {*rows["client_id"][mine]} for role, mine in roles.items()}
        assert ids["test"]
        assert ids["test"] <= own
        assert not (ids["train"] | ids["public"]) & own


def test_a_release_asks_nobody_of_the_test_part(project: Project) -> None:
    """Who is asked is who the stages take."""
    configured = file_of(project, "release").configure_pipeline("release", ())
    raw = raw_files(project, configured.pipeline, fetch=False)
    assert not isinstance(raw, MissingFiles)
    found = find_people(project, configured, raw)
    assert len(found.senders) > 50
    assert not {*np.unique(found.senders).tolist()} & set_aside(project)


def test_more_than_the_part_has_is_refused(project: Project) -> None:
    """It is not filled up from the training part."""
    with pytest.raises(UserError, match="only 22 in the publisher's test part"):
        plain.run(project, "more")
