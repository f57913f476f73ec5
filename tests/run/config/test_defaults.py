"""The file's defaults are for whoever reads them; what somebody states must be read."""

from pathlib import Path
from typing import Any

import pytest

from curvote.base.errors import UserError
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import as_yaml
from tests import plain

DEFAULTS = {"learners": ["cg"], "seed": 3, "epsilon": [2.0]}


def file(root: Path, pipeline: dict[str, Any], *without: str) -> PipelinesFile:
    """Return a file of one pipeline, ``tiny``, that takes some keys from defaults."""
    own = {key: value for key, value in pipeline.items() if key not in without}
    whole = {"defaults": DEFAULTS, "pipelines": {"tiny": own}}
    (root / "pipelines.yaml").write_text(as_yaml(whole))
    return PipelinesFile(Project(root))


def test_what_a_system_never_reads_is_left_out(tmp_path: Path) -> None:
    """Learners of all pipelines are no error where one has none; its seed stands."""
    given = plain.of("direct") | {"protocols": ["direct"]}
    made = file(tmp_path, given, "epsilon").configure_pipeline("tiny")
    assert made.pipeline.seed == plain.TINY["seed"]
    assert made.settings[0].pipeline.epsilon == [2.0]
    assert "learners" not in made.values()


def test_a_grid_may_name_who_reads_them(tmp_path: Path) -> None:
    """A label of an axis sets the protocol, which then has its epsilon."""
    labels = {"plain": {"protocol": "clean"}, "noised": {"protocol": "mrma"}}
    given = plain.TINY | {"protocol": "clean", "grid": {"how": labels}}
    made = file(tmp_path, given, "epsilon", "learners").configure_pipeline("tiny")
    clean, mrma = (setting.pipeline for setting in made.settings)
    assert mrma.epsilon == [2.0]
    assert not hasattr(clean, "epsilon")
    assert [one.name for one in mrma.learners] == ["cg"]
    del given["grid"]["how"]["plain"]
    alone = file(tmp_path, given, "epsilon").configure_pipeline("tiny")
    assert alone.pipeline.epsilon == [2.0]


def test_an_override_may_name_another_system(tmp_path: Path) -> None:
    """It gets what it reads of the defaults, and is not asked about the others."""
    own = {"protocol": "mrma", "project": {"basis": "bspline", "size": 4}}
    made = file(tmp_path, plain.of("votes") | own, "aggregate")
    changed = made.configure_pipeline("tiny", ["protocol=votes"])
    assert changed.pipeline.protocol == "votes"
    assert "learners" not in changed.values()


def test_what_an_override_gives_is_no_default(tmp_path: Path) -> None:
    """Somebody asked for it, so somebody must read it."""
    made = file(tmp_path, plain.of("direct"))
    with pytest.raises(UserError, match=r"--set learners=\[cg\]: learners: direct"):
        made.configure_pipeline("tiny", ["learners=[cg]"])


def test_a_section_that_an_override_begins_stands_in_set(tmp_path: Path) -> None:
    """The file has no line for it; where it has one, that is the place."""
    made = file(tmp_path, plain.TINY)
    with pytest.raises(UserError) as error:
        made.configure_pipeline("tiny", ["votes.directions=5"])
    assert str(error.value) == (
        "--set votes.directions=5: votes: mrma never reads it: it belongs to votes."
        " Take it out, or name votes."
    )
    written = file(tmp_path, plain.TINY | {"votes": {"size": 3}})
    with pytest.raises(UserError, match=r"^pipelines.yaml:\d+: votes: mrma never"):
        written.configure_pipeline("tiny", ["votes.directions=5"])


def test_a_name_that_is_close_is_offered(tmp_path: Path) -> None:
    """Of those that would be read; no list of all."""
    given = plain.of("votes") | {"train": {"count": 5, "size": 20}}
    with pytest.raises(UserError, match=r"train: votes never reads it: .*mrma\. Take"):
        file(tmp_path, given).configure_pipeline("tiny")


def test_an_axis_that_nobody_reads_is_refused(tmp_path: Path) -> None:
    """Its settings would all be the same."""
    given = plain.of("votes") | {"grid": {"train.size": [3, 4]}}
    with pytest.raises(UserError, match="train: votes never reads it"):
        file(tmp_path, given).configure_pipeline("tiny")
