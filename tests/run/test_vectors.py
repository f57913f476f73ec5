"""Feature vectors through the chain: public bounds, and rows that come in pieces."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.chain.axis import Cell
from curvote.curves.encoding import Encoding
from curvote.data.registry import DATASETS
from curvote.pipeline.config.project import Project
from curvote.pipeline.run.results import find_artifact, mean_scores
from curvote.pipeline.store.artifacts import Artifact
from curvote.pipeline.store.records import RunRecord
from curvote.report.page import draw_report
from curvote.systems.common.projection import project_metadata
from tests import fake_source, plain

VECTORS = plain.TINY | {
    "source": {"name": "fake"},
    "clients": {"train": 30, "vote": 40, "test": 30},
    "project": {"basis": "identity", "rescale": "min_max", "bounds": "public"},
    "epsilon": [20],
    "learners": ["centroid"],
    "replicates": 3,
}


@pytest.fixture
def vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project whose clients are feature vectors."""
    monkeypatch.setitem(DATASETS._places, "fake", "tests.fake_source")
    return plain.write(tmp_path, vectors=VECTORS)


def stored(project: Project, record: RunRecord, stage: str) -> Artifact:
    """Return a shared artifact of the run."""
    return find_artifact(project, record, stage, Cell())


def test_public_bounds_rescale_the_features(vectors: Project) -> None:
    """A feature becomes 2 (x - lower)/(upper - lower) - 1, clipped."""
    record = plain.run(vectors, "vectors")
    rows = stored(vectors, record, "project").columns("encoded", (0,))
    raw = stored(vectors, record, "ingest").columns("clients", (0,))["curve"]
    lower, upper = np.array([0, -1]), np.array([100, 3])
    expected = 2 * (raw - lower) / (upper - lower) - 1
    assert rows["z"] == pytest.approx(np.clip(expected, -1, 1))
    assert rows["clipped"].tolist() == (np.abs(expected) > 1).sum(axis=1).tolist()
    assert rows["clipped"].sum() > 0
    (error,) = (
        row["misclassification"]
        for row in mean_scores(vectors, record)
        if row["method"] == "mrma"
    )
    assert error < 0.2


def test_pieces_are_shards_and_read_as_one(vectors: Project) -> None:
    """The store never needs all clients at once; whoever asks gets all of them."""
    record = plain.run(vectors, "vectors")
    for stage, table in (("ingest", "clients"), ("project", "encoded")):
        there = stored(vectors, record, stage)
        sizes = [len(piece["label"]) for piece in there.pieces(table)]
        assert sizes == [sum(fake_source.SIZES)]
        assert len(there.columns(table, (2,))["label"]) == sum(sizes)
        assert there.manifest["tables"][table]["rows"] == sum(sizes)
    constants = stored(vectors, record, "project").columns("constants", (0,))
    assert constants["name"].tolist() == ["lower", "upper"]


@pytest.mark.usefixtures("blank_figures")
def test_bounds_from_data_are_marked_as_not_private(vectors: Project) -> None:
    """They are everybody's extremes, and the report says what that means."""
    record = plain.run(vectors, "vectors", "project.bounds=from_data")
    raw = stored(vectors, record, "ingest").columns("clients", (0,))["curve"]
    constants = stored(vectors, record, "project").columns("constants", (0,))
    assert constants["value"] == pytest.approx(np.array([raw.min(0), raw.max(0)]))
    page = draw_report(vectors, record).read_text()
    assert "NOT PRIVATE" in page
    assert "10 of 100 rows repeat an earlier one." in page


@pytest.mark.usefixtures("blank_figures")
def test_the_report_shows_no_record_of_anybody(vectors: Project) -> None:
    """Vectors are not drawn; clipping is counted, in a study."""
    page = draw_report(vectors, plain.run(vectors, "vectors")).read_text()
    assert "NOT PRIVATE" not in page
    assert "the features: age, dose" in page
    assert "No records are shown." in page
    assert "beyond" in page


def test_curves_have_no_public_centre(project: Project) -> None:
    """Only a table's schema states one."""
    given = plain.TINY["project"] | {"centre": "public"}
    plain.write(project.root, tiny=plain.TINY | {"project": given})
    with pytest.raises(UserError, match="state centre and scale"):
        plain.run(project)


def test_public_bounds_of_curves_bound_their_coefficients(project: Project) -> None:
    """Without any stated there are none to use."""
    plain.write(
        project.root,
        tiny=plain.TINY
        | {
            "project": plain.TINY["project"]
            | {"rescale": "min_max", "bounds": "public"}
        },
    )
    with pytest.raises(UserError, match="states no public bounds"):
        plain.run(project)


@pytest.mark.parametrize("derivative", [0, 1])
def test_public_bounds_of_each_channel_are_reached_and_never_passed(derivative):
    """The worst curve within the channels' bounds has the bounds' coefficient."""
    ends = [[-2, 0], [2, 90]]
    facts = {"grid": [*range(9)], "channels": ["x", "y"], "irregular": "smooth"}
    facts |= {"bounds": {"lower": ends[0], "upper": ends[1]}}
    said = {"basis": "bspline", "size": 5, "order": 4, "coordinates": "orthonormal"}
    said |= {"rescale": "min_max", "bounds": "public", "lower": -1.0, "upper": 1.0}
    said |= {"derivative": derivative}
    params = {f"project.{name}": value for name, value in said.items()}
    made = project_metadata({"ingest": SimpleNamespace(metadata=facts)}, params)
    encoding = Encoding.from_json(made["encoding"])
    assert (made["d"], encoding.smooth) == (2 * (5 - derivative), True)
    low, high = np.repeat(ends, 9, axis=1)
    worst = np.where(encoding.projection.matrix > 0, high, low)
    reached = np.diag(encoding.projection.apply(worst))
    assert np.allclose(reached, encoding.constants["upper"])
    curves = np.random.default_rng(0).uniform(low, high, (500, 18))
    assert not encoding.encode(curves).clipped.any()


@pytest.mark.parametrize("rescale", ["tanh", "standard"])
def test_public_constants_put_the_farther_bound_three_scales_away(
    vectors: Project, rescale: str
) -> None:
    """They are the schema's, whatever the clients' values are."""
    public = {"basis": "identity", "rescale": rescale}
    public |= {"centre": "public", "scale": "public"}
    direct = plain.of("direct", given=VECTORS)
    plain.write(vectors.root, vectors=direct | {"project": public})
    record = plain.run(vectors, "vectors", "direct.arm=mean")
    constants = stored(vectors, record, "project").columns("constants", (0,))
    centre, scale = constants["value"]
    ends = np.array([[0, -1], [100, 3]])
    assert np.abs((ends - centre) / scale).max(axis=0) == pytest.approx([3, 3])
    assert ((ends[0] < centre) & (centre < ends[1])).all()


@pytest.mark.parametrize(
    ("project", "message"),
    [
        ({"basis": "identity", "size": 3}, "leave size"),
        ({"basis": "bspline"}, "is missing"),
        ({"basis": "identity", "bounds": "public"}, "belong to rescale: min_max"),
    ],
)
def test_what_a_representation_refuses(
    vectors: Project, project: dict[str, object], message: str
) -> None:
    """Features have their own number; a basis needs one; bounds need min_max."""
    plain.write(vectors.root, vectors=VECTORS | {"project": project})
    with pytest.raises(UserError, match=message):
        plain.plan(vectors, "vectors")
