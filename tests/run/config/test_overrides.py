"""What the command line may change of a pipeline in production."""

from pathlib import Path

import pytest

from curvote.base.errors import UserError
from curvote.chain.registry import SYSTEMS
from curvote.pipeline.config.file import PipelinesFile, overridable_settings
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.schema import pipeline_model
from curvote.pipeline.run.planner import make_plan
from tests import plain, production
from tests.exchange import FAR
from tests.production import NAME

# One for every way in which a message, its cap, or who takes part could be changed;
# some only look like no change: 1 and 1.0 are equal, and name two releases.
CHANGES = [
    "mode=study",
    "source.points=30",
    "source.points=20.0",
    "source.groups=null",
    "source={name: simulated, points: 21}",
    "clients.train=61",
    "clients={train: 80, vote: 60}",
    "seed=8",
    "seed=null",
    "replicates=5",
    "protocol=direct",
    "protocols=[mrma]",
    "grid={aggregate.cutoff: [0.6]}",
    "project.scale=1e-6",
    "project.judge=rescaled",
    "privatize={mechanism: gaussian, params: {delta: 0.5}}",
    "privatize.label_share=0.9",
    "train.size=10",
    "direct.intercept=0.5",
    "votes.directions=3",
    "learners=[svm]",
    "epsilon=100000",
    "ledger.per_client.epsilon=100000",
    "ledger={per_client: {epsilon: 100000}}",
    "ledger.population=others",
    "ledger=null",
    "intake={}",
    "as_published=true",
    "federation.split=budget",
]


@pytest.fixture
def file(tmp_path: Path) -> PipelinesFile:
    """Return two pipelines in production, ``far`` by envelope, and a study."""
    three = {NAME: production.REAL, "far": FAR, "study": plain.TINY}
    return PipelinesFile(plain.write(tmp_path, **three))


@pytest.mark.parametrize("change", CHANGES)
def test_production_is_not_overridden(file: PipelinesFile, change: str) -> None:
    """The message says what, against what, and the two ways out."""
    path = change.partition("=")[0]
    with pytest.raises(UserError) as caught:
        file.configure_pipeline(NAME, [change])
    for message in str(caught.value).splitlines():
        assert message.startswith(f"--set {change}: {path}")
        assert "belongs into pipelines.yaml" in message
        assert "curvote ledger raise-cap" in message


@pytest.mark.parametrize("change", ["intake.min_reports=40", "intake.fold=2"])
def test_nor_are_its_rounds_of_envelopes(file: PipelinesFile, change: str) -> None:
    """How many must come before anything is computed stands in the file, too."""
    with pytest.raises(UserError, match=r"belongs into pipelines\.yaml"):
        file.configure_pipeline("far", [change])


@pytest.mark.parametrize("fixed", [{"seed": 8}, {"replicates": 5}])
def test_seed_and_replicates_are_no_way_around(
    file: PipelinesFile, fixed: dict[str, int]
) -> None:
    """``--seed`` would give clients other roles: another cohort, another release."""
    (name,) = fixed
    with pytest.raises(UserError, match=rf"{name}: {fixed[name]} is asked for"):
        file.configure_pipeline(NAME, **fixed)
    assert file.configure_pipeline("study", **fixed)


def test_a_study_does_not_become_production(file: PipelinesFile) -> None:
    """What releases stands in the file, where others can read it."""
    cap = "ledger={per_client: {epsilon: 9}}"
    with pytest.raises(UserError, match="mode: production is asked for"):
        file.configure_pipeline("study", ["mode=production", cap])
    assert file.configure_pipeline(
        "study", ["epsilon=9", "seed=3"]
    ).pipeline.epsilon == [9]


def test_what_is_read_after_the_last_message_stays_free(tmp_path: Path) -> None:
    """Every such override leaves the names of all releases as they were."""
    project = production.write(tmp_path)
    stated = _releases(project)
    for change in ("cutoff=0.6", "when_none_pass=best", "weights=distance"):
        assert _releases(project, f"aggregate.{change}") == stated
    assert _releases(project, "aggregate={cutoff: 0.6}", "epsilon=4") == stated


def _releases(project: Project, *overrides: str) -> list[str]:
    configured = PipelinesFile(project).configure_pipeline(NAME, overrides)
    steps = make_plan(project, configured, fetch=True).steps
    return [step.key for step in steps if step.release]


@pytest.mark.parametrize("protocol", SYSTEMS)
def test_no_protocol_frees_what_makes_a_run(protocol: str) -> None:
    """Whatever a new stage reads: the sections that name releases are never free."""
    sections = set(pipeline_model(frozenset({protocol})).model_fields)
    stated = {
        n for n in overridable_settings(protocol) if n.partition(".")[0] in sections
    }
    own = {f"transfer.{name}" for name in ("target", "weights", "decide")}
    own |= {f"labels.{name}" for name in ("holdout", "calibrate", "decide")}
    own |= {f"monitor.{name}" for name in ("reference", "margin", "error")}
    own |= {"source.balance"}
    assert {name.partition(".")[0] for name in stated - own} <= {"aggregate"}
