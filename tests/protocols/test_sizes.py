"""How many numbers stand for a curve where a public rule says: `project.size: auto`."""

from pathlib import Path
from typing import Any

import pytest

from curvote.base.errors import UserError
from curvote.curves.basis import BASES, check_size
from curvote.messages.sizes import nearest_size, wanted_size
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.settings import describe_choices, resolve_parts
from curvote.pipeline.run import audit_tasks
from curvote.pipeline.run.results import final_model, final_views, mean_scores
from curvote.report.page import draw_report
from curvote.wire.task import Task
from tests import plain

REPOSITORY = Path(__file__).parents[2]
OPEN = {"basis": "bspline", "size": "auto"}
VOLUNTEERS = {"coordinates": "orthonormal", "rescale": "standard"}
MANY = plain.TINY | {
    "project": OPEN | VOLUNTEERS,
    "protocols": [
        "auto",
        "votes",
        "majority",
        "clean",
        {"name": "mrma", "project.rescale": "tanh"},
    ],
    "epsilon": [0.5, 8],
    "learners": ["centroid"],
    "replicates": 2,
}
# N = 60 + 80, None: without epsilon. Numbers noised one by one are fewer.
SIZES = {0.5: 5, 8: 9, None: 9}
ONE_BY_ONE = {0.5: 4, 8: 6}


def taken(project: Project, name: str = "tiny", *overrides: str) -> dict[Any, Any]:
    """Return the sizes that a pipeline's parts have, by protocol and epsilon."""
    configured = PipelinesFile(project).configure_pipeline(name, overrides)
    return {
        (part.settings.called, dict(part.pairs).get("epsilon")): part.settings.project
        for setting in configured.settings
        for part in resolve_parts(setting.pipeline)
    }


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project in which several protocols ran with the rule's sizes."""
    project = plain.write(tmp_path_factory.mktemp("sizes"), tiny=MANY)
    plain.run(project)
    return project


def test_a_short_grid_has_no_more_numbers_than_points(tmp_path: Path) -> None:
    """Volunteers choose among those bases that its curves can have."""
    short = plain.of("direct") | {"project": "auto"}
    short["source"] = short["source"] | {"points": 8}
    short["clients"] = short["clients"] | {"public": 20}
    found = taken(plain.write(tmp_path, tiny=short))
    assert {project.size for project in found.values()} == {8}


def test_only_n_epsilon_squared_counts_and_more_of_it_is_no_fewer_numbers() -> None:
    """Four times the clients are twice the epsilon."""
    assert wanted_size(4000, 1) == pytest.approx(wanted_size(1000, 2))
    wanted = [wanted_size(n, 1) for n in (1, 10, 100, 1000, 10**6)]
    assert wanted == sorted(wanted)


@pytest.mark.parametrize(("n", "epsilon"), [(0, 1), (10, 0), (10, float("nan"))])
def test_nobody_or_no_epsilon_has_no_size(n: int, epsilon: float) -> None:
    """As everywhere else."""
    with pytest.raises(UserError):
        wanted_size(n, epsilon)


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("wanted", [0.4, 3.7, 6.4, 8.0, 500.0])
@pytest.mark.parametrize("points", [None, 7, 24])
def test_a_size_is_one_that_the_basis_has(
    basis: str, wanted: float, points: int | None
) -> None:
    """On that grid, and no other that it has is nearer; one number is never enough."""
    size = nearest_size(lambda _: wanted, basis, 4, points)
    check_size(basis, size, 4, points)
    for other in range(2, 199):
        if abs(other - wanted) < abs(size - wanted):
            with pytest.raises(UserError):
                check_size(basis, other, 4, points)


@pytest.mark.parametrize("mechanism", ["laplace", "piecewise", "sampled", "privunit"])
def test_noisier_reports_hold_no_more_numbers(mechanism: str, tmp_path: Path) -> None:
    """A mechanism that noises numbers one by one spends epsilon/(d + 1) on each."""
    project = plain.write(tmp_path, tiny=plain.TINY | {"project": OPEN})
    ways = f"privatize.mechanism={mechanism}", "epsilon=[0.1, 1, 5, 50]"
    sizes = [own.size for own in taken(project, "tiny", *ways).values()]
    assert sizes == sorted(sizes)
    assert all(
        a <= wanted_size(140, e) + 2
        for a, e in zip(sizes, (0.1, 1, 5, 50), strict=True)
    )


def test_every_protocol_gets_a_number_for_each_epsilon(many: Project) -> None:
    """What has no epsilon gets one; nothing else of the settings changes."""
    found = taken(many)
    assert {at: own.size for at, own in found.items()} == {
        (name, epsilon): size
        for name in ("auto", "votes", "majority", "clean")
        for epsilon, size in SIZES.items()
        if (epsilon is None) is (name == "clean")
    } | {("mrma", epsilon): size for epsilon, size in ONE_BY_ONE.items()}


@pytest.mark.parametrize(
    "name", ["phonemes", "nhanes", "compare", "servers", "arrivals"]
)
def test_each_study_of_curves_may_leave_its_size_open(name: str) -> None:
    """Whatever its protocol, basis and source are."""
    found = taken(Project(REPOSITORY), name, "project.size=auto")
    for own in found.values():
        check_size(own.basis, own.size, own.order)
    assert len({own.size for own in found.values()}) > 1


@pytest.mark.parametrize("epsilon", [0.5, 8])
def test_steps_and_scores_are_those_of_stated_sizes(
    many: Project, epsilon: float
) -> None:
    """The rule is read before any key is made: nothing is computed twice."""
    together = mean_scores(many, plain.run(many))
    for names, sizes in (
        ({"auto", "votes", "majority"}, SIZES),
        ({"mrma"}, ONE_BY_ONE),
    ):
        ways = f"epsilon=[{epsilon}]", f"project.size={sizes[epsilon]}"
        steps = plain.plan(many, "tiny", *ways).steps
        own = [step for step in steps if step.cell["setting"] in names]
        assert {step.action for step in own} == {"reuse"}
        rows = mean_scores(many, plain.run(many, "tiny", *ways))
        mine = [row for row in rows if row["protocol"] in names]
        assert {row["protocol"] for row in mine} == names
        assert all(row in together for row in mine)


def test_a_rerun_of_the_open_size_computes_nothing(many: Project) -> None:
    """Also its shared stages, which stand once for each size."""
    made = plain.plan(many)
    assert not made.steps_to_run()
    cells = {str(s.cell) for s in made.steps if s.stage.name == "project"}
    assert {"votes epsilon=0.5", "votes epsilon=8", "clean"} <= cells
    (ingest,) = {s.key for s in made.steps if s.stage.name == "ingest"}
    assert ingest


@pytest.mark.usefixtures("blank_figures")
def test_models_audit_and_page_know_the_size_of_their_cell(many: Project) -> None:
    """A model takes whole curves; a task asks for as many numbers as it is about."""
    record = plain.run(many)
    for view in final_views(many, record):
        model = final_model(many, record, view.cell)
        if hasattr(model, "coef"):
            assert len(model.coef) == view.settings.project.size
            assert view.metadata("project")["d"] == view.settings.project.size
    tasks = audit_tasks.run_tasks(many, record)
    mine = [t for t in tasks if isinstance(t, Task) and t.protocol == "mrma"]
    asked = {(task.epsilon, task.encoding.d) for task in mine}
    assert asked == {(0.5, 4), (8.0, 6)}
    configured = PipelinesFile(many).configure_pipeline("tiny")
    assert [t.digest() for t in tasks] == [
        t.digest() for t in audit_tasks.pipeline_tasks(many, configured)
    ]
    page = draw_report(many, record).read_text(encoding="utf-8")
    for words in ("5 or 9 cubic B-splines", "4 noised numbers", "6 noised numbers"):
        assert words in page


def test_the_reason_names_rule_and_size_once_for_protocols_that_share_it(
    many: Project,
) -> None:
    """The size stands before what `auto` takes with it."""
    told = describe_choices(PipelinesFile(many).configure_pipeline("tiny").values())
    rule = "3.5 (N epsilon^2)^0.1"
    assert len(told) == 7  # two epsilons: auto, mrma, the others; and clean
    first = f"auto, epsilon 0.5: d = 5, votes, because {rule} = 5.0 "
    assert told[0].startswith(first)
    same = f"votes, majority, epsilon 8: d = 9, because {rule} = 8.7 numbers a record"
    same += " are worth their noise, N epsilon^2 = 8,960"
    assert same in told


def test_production_states_its_size(tmp_path: Path) -> None:
    """A later rule must not make another release of it; the refusal names the size."""
    release = {
        "mode": "production",
        "protocol": "direct",
        "direct": {"arm": "mean"},
        "source": {"name": "simulated", "points": 20},
        "clients": {"train": 1000},
        "project": OPEN | {"rescale": "standard"},
        "epsilon": 1,
        "ledger": {"per_client": {"epsilon": 1}},
    }
    with pytest.raises(UserError, match=r"project\.size: .* states its size.* d = 7"):
        PipelinesFile(plain.write(tmp_path, tiny=release)).configure_pipeline("tiny")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"project": OPEN | {"basis": "identity"}}, "leave size"),
        ({"project": OPEN | {"basis": "fuorier"}}, "Did you mean 'fourier'"),
        ({"project": OPEN | {"size": "atuo"}}, "'auto'"),
        ({"project": OPEN | {"size": 2.5}}, "whole number"),
        ({"project": OPEN | {"centre": [0.0, 0.0]}}, "centre has shape"),
    ],
)
def test_what_the_rule_cannot_mend_is_said(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    """As of a stated size."""
    file = PipelinesFile(plain.write(tmp_path, tiny=plain.TINY | changes))
    with pytest.raises(UserError, match=message):
        file.configure_pipeline("tiny")


def test_a_system_that_counts_no_clients_states_its_size() -> None:
    """Hospitals that release once know alone how many patients they have."""
    with pytest.raises(UserError, match="state a size"):
        taken(Project(REPOSITORY), "phonemes-five", "project.size=auto")


def test_volunteers_alone_are_sized_by_their_own_number() -> None:
    """Fifty records as they are say less than the reports of many, and cost nothing."""
    few, many = (
        taken(Project(REPOSITORY), "phonemes", "project.size=auto", ways)
        for ways in ("clients.public=2", "clients.public=50")
    )
    at = "volunteers", None
    assert few[at].size < many[at].size
    del few[at], many[at]
    assert few == many
